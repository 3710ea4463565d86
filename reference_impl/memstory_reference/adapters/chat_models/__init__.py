"""Chat models: on an Ollama server, recorded, and scripted."""
