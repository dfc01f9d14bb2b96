"""The admin application: everything but generations, over aiohttp."""
