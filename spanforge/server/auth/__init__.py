"""Who asks, how that is known, and what the role allows."""
