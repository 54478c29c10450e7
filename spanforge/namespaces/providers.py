"""One name for each provider of models, as OpenTelemetry's conventions have it."""

from __future__ import annotations

from typing import Final

__all__ = ["MAKERS", "well_known"]

_PROVIDERS: Final = {
    "aws": "aws.bedrock",
    "aws_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "azure_ai_inference": "azure.ai.inference",
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gen_ai",
    "google_genai": "gcp.gen_ai",
    "google_gemini": "gcp.gemini",
    "google_vertex": "gcp.vertex_ai",
    "google_vertexai": "gcp.vertex_ai",
    "grok": "x_ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex": "gcp.vertex_ai",
    "vertex_ai": "gcp.vertex_ai",
    "vertexai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""What providers are called elsewhere, and what OpenTelemetry's conventions for generative AI call them."""

_WELL_KNOWN: Final = frozenset(
    (*_PROVIDERS.values(), "openai", "anthropic", "cohere", "perplexity", "deepseek", "groq")
)

MAKERS: Final = {
    "aws.bedrock": "aws",
    "azure.ai.inference": "azure",
    "azure.ai.openai": "azure",
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "gcp.vertex_ai": "google",
}
"""Who is behind a well-known name, for those who call all services of one maker alike."""


def well_known(name: str | None) -> str | None:
    """Return the well-known name of a provider; any other name as it was given."""
    if not name:
        return None
    plain = name.lower()
    known = _PROVIDERS.get(plain.replace("-", "_").replace(" ", "_").replace(".", "_"), plain)
    return known if known in _WELL_KNOWN else name
