"""What names of spanforge 1.x say that spanforge 2 does not have."""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["explained"]

_GONE: Final = {
    "spanforge": """
        ActorContext AgentRunContext AgentStepContext AuditStream BatchExporter BudgetMonitor ConsentBoundary
        ConsumerRegistry CostTracker EvalRunner EventStream EventType Exporter HITLQueue HookRegistry JSONLExporter
        ModelRegistry OTLPExporter OTelBridgeExporter PromptRegistry ProviderNormalizer Redactable RedactionPolicy
        Sampler Sensitivity Span SpanEvent SpanForgeConfig SpanPayload SpanProcessor Tags TokenUsage ToolCall Trace
        TraceStore TraceViewerServer Tracer WebhookExporter add_processor aiter_file alerts assert_redacted
        assert_verified audit baseline budget_alert cache check_egress compliance consent consumer contains_pii
        copy_context core cost debug drift egress eval explain export exporters gate gateway generate_ulid get_config
        get_store get_trace governance hitl hooks inspect inspect_trace io iter_file lint migrate model_registry
        namespace_of normalizer plugins policy presidio_backend print_tree processor prompt_registry redact
        register_consumer register_prompt sampling scan_payload secrets serve_metrics sign signing start_trace stream
        summary trace tracer trace_store types ulid validate validate_event verify verify_chain visualize
        """,
    "spanforge.sdk": """
        SFAlertClient SFAlertError SFAuditClient SFAuditError SFAuthError SFCECClient SFCECError SFConfigError
        SFEnterpriseClient SFError SFGateClient SFGateError SFIdentityClient SFObserveClient SFObserveError
        SFPIIClient SFPIIError SFSecretsClient SFSecretsError SFSecurityClient SFTrustClient SFTrustError
        ServiceRegistry alert audit benchmark_pipeline bias_pipeline cec enterprise explain fallback gate identity
        lineage load_config_file monitor_pipeline observe operator pii pipelines policy rbac registry risk_pipeline
        scope score_pipeline secrets security sf_alert sf_audit sf_cec sf_enterprise sf_explain sf_gate sf_identity
        sf_lineage sf_observe sf_operator sf_pii sf_policy sf_rbac sf_scope sf_secrets sf_security sf_trust
        sf_validate trust validate_config
        """,
    "spanforge.namespaces": """
        audit cache confidence consent cost decision diff drift eval_ fence guard hitl latency prompt redact
        runtime_governance template tool_call trace
        """,
}
"""Names that people imported from 1.x, by package."""


def explained(package: str, name: str) -> Exception:
    """Return the error for a name that a package does not have: in Python's words, or why it is gone.

    Args:
        package: Whose `__getattr__` asks.
        name: Without the package.
    """
    if name not in _GONE.get(package, "").split():
        return AttributeError(f"module {package!r} has no attribute {name!r}")
    sentence = (
        f"{package}.{name} is not part of spanforge 2: spanforge 2 traces RAG runs and takes feedback. "
        "For what else 1.x had, keep it in an environment of its own: pip install 'spanforge<2'"
    )
    # `from package import name` asks from within the import system, and would put its own words in an AttributeError's
    # place.
    imported = sys._getframe(2).f_code.co_name == "_handle_fromlist"  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  Python's only way
    return ModuleNotFoundError(sentence) if imported else AttributeError(sentence)
