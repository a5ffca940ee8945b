"""OSWorld's and AReaL's code: pyautogui calls, and the control words WAIT, DONE and FAIL."""
