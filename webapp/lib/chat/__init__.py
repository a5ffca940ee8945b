"""Language models at addresses of the OpenAI protocol (chat completions): who may ask where, and the call."""
