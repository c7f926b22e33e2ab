"""What libraries offer: models for the target `library` (docs/libraries.md)."""
