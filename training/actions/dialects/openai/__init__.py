"""OpenAI's computer tool."""
