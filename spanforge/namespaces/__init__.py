"""What an event says: the envelope, the payloads and the hash chain."""
