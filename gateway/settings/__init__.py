"""What a gateway may be told, a frozen dataclass a section; how it is read, and read again."""
