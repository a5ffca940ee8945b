"""What pydantic says of a value, in the words of our pages."""

WORDS = {
    "Input should be a valid integer, unable to parse string as an integer": "must be a whole number",
    "Input should be a valid number, unable to parse string as a number": "must be a number",
    "Input should be a valid boolean, unable to interpret input": "must be true or false",
    "Unable to parse input string as an integer, exceeded maximum size": "is far too large",
    "Input should be ": "must be ",
}


def in_plain_words(message: str) -> str:
    message = message.removeprefix("Value error, ")
    for technical, plain in WORDS.items():
        message = message.replace(technical, plain)
    return message
