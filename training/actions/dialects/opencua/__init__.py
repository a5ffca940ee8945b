"""OpenCUA: sections of words, then pyautogui code in a block."""
