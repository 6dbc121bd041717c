"""What servers say instead of an answer, in their own words and with their own status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_openclaw.values.replies import Fault, Reply
from tests.providers.servers.apis import CHAT, Api, ask, described
from tests.providers.servers.misbehaving import Script, sse
from tests.providers.servers.ollama import OllamaServer, answer, lines, native, said

pytestmark = pytest.mark.newest


def openai(message: str, **more: Any) -> dict[str, Any]:
    """An error object in OpenAI's form."""
    return {"error": {"message": message, **more}}


NO_MODEL = ("model_not_found", "skipped_unavailable", "target", False)
NO_TOOLS = ("no_tools", "skipped_unavailable", "cell", False)
CONTEXT = ("context_overflow", "error", "cell", False)
QUOTA = ("quota_exhausted", "rate_limited", "target", False)
FILTER = ("content_filter", "ok", "cell", False)
BROKEN = ("stream_error", "error", "cell", True)


def http(status: int, *, retried: bool = False) -> tuple[str, str, str, bool]:
    """An outcome by the status only."""
    availability = {401: "auth_error", 403: "auth_error", 429: "rate_limited"}.get(status, "error")
    return f"http_{status}", availability, "target" if status == 401 else "cell", retried


KEY = ("http_400", "auth_error", "target", False)
FAILED_GENERATION = (
    "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."
)
BEHIND = {
    "raw": json.dumps(openai("Function calling is not enabled for this model.", code=400)),
    "provider_name": "Google AI Studio",
}

ERRORS = {
    # the server has no such model
    "openrouter-model": (400, openai("qwen3 is not a valid model ID", code=400), NO_MODEL),
    "openrouter-endpoints": (404, openai("No endpoints found for qwen3.", code=404), NO_MODEL),
    "openrouter-privacy": (404, openai("No endpoints found matching your data policy (Free model publication). Configure: https://openrouter.ai/settings/privacy", code=404), NO_MODEL),
    "openrouter-providers": (404, openai("No allowed providers are available for the selected model.", code=404), NO_MODEL),
    "litellm-model": (400, openai("{'error': '/chat/completions: Invalid model name passed in model=qwen3. Call `/v1/models` to view available models for your key.'}", type="None", param="None", code="400"), NO_MODEL),
    "litellm-provider": (400, openai("litellm.BadRequestError: LLM Provider NOT provided. Pass in the LLM provider you are trying to call. You passed model=qwen3", code="400"), NO_MODEL),
    "deepseek-model": (400, openai("Model Not Exist", type="invalid_request_error", param=None, code="invalid_request_error"), NO_MODEL),
    "mistral-model": (400, {"object": "error", "message": "Invalid model: qwen3", "type": "invalid_model", "param": None, "code": "1500"}, NO_MODEL),
    "groq-model": (404, openai("The model `qwen3` does not exist or you do not have access to it.", type="invalid_request_error", code="model_not_found"), NO_MODEL),
    "groq-decommissioned": (400, openai("The model `qwen3` has been decommissioned and is no longer supported.", code="model_decommissioned"), NO_MODEL),
    "lm-studio-none-loaded": (404, openai("No models loaded. Please load a model in the developer page or use the `lms load` command.", type="invalid_request_error", param="model", code="model_not_found"), NO_MODEL),
    "lm-studio-none-loaded-by-words": (400, {"error": "No models loaded. Please load a model in the developer page."}, NO_MODEL),
    "vllm-model": (404, {"object": "error", "message": "The model `qwen3` does not exist.", "type": "NotFoundError", "param": None, "code": 404}, NO_MODEL),
    "llama-swap-model": (400, {"error": "could not find suitable inference handler for qwen3"}, NO_MODEL),
    "llama.cpp-router-model": (404, openai("model 'qwen3' not found", type="not_found_error", code=404), NO_MODEL),
    "ollama-model": (404, {"error": "model 'qwen3' not found"}, NO_MODEL),
    "ollama-model-over-v1": (404, openai('model "qwen3" not found, try pulling it first', type="api_error", param=None, code=None), NO_MODEL),
    "together-model": (404, openai("Unable to access model qwen3. Please visit https://api.together.ai/models to view the list of supported models.", type="invalid_request_error", code="model_not_available"), NO_MODEL),
    "fireworks-model": (404, openai("Model not found, inaccessible, and/or not deployed", param="model", code="NOT_FOUND", type="error"), NO_MODEL),
    "azure-deployment": (404, openai("The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.", code="DeploymentNotFound"), NO_MODEL),
    "github-model": (400, openai("Unknown model: qwen3", code="unknown_model"), NO_MODEL),
    "google-model": (404, {"error": {"code": 404, "message": "models/qwen3 is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.", "status": "NOT_FOUND"}}, NO_MODEL),
    "anthropic-model": (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: qwen3"}}, NO_MODEL),
    "kimi-model": (404, openai("Not found the model qwen3 or Permission denied", type="resource_not_found_error"), NO_MODEL),
    "zai-model": (400, openai("Unknown Model, please check the model code.", code="1211"), NO_MODEL),
    "hugging-face-model": (400, openai("The requested model 'qwen3' is not supported by any provider you have enabled.", type="invalid_request_error", code="model_not_supported"), NO_MODEL),
    "text-generation-webui-model": (500, openai("No model is loaded"), NO_MODEL),
    "bedrock-model": (400, {"message": "The provided model identifier is invalid."}, NO_MODEL),
    # the model, or the server, takes no tools
    "openrouter-tools": (404, openai("No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing", code=404), NO_TOOLS),
    "openrouter-tool-choice": (404, openai("No endpoints found that support the provided 'tool_choice' value.", code=404), NO_TOOLS),
    "openrouter-behind": (400, openai("Provider returned error", code=400, metadata=BEHIND), NO_TOOLS),
    "llama.cpp-jinja": (500, openai("tools param requires --jinja flag", code=500, type="server_error"), NO_TOOLS),
    "llama.cpp-jinja-choice": (500, openai("tool_choice param requires --jinja flag", code=500, type="server_error"), NO_TOOLS),
    "llama.cpp-before-jinja": (500, openai("Unsupported param: tools", code=500, type="server_error"), NO_TOOLS),
    "llama.cpp-grammar": (400, openai("Failed to initialize samplers: failed to parse grammar", code=400, type="invalid_request_error"), NO_TOOLS),
    "llama.cpp-grammar-500": (500, openai("failed to parse grammar", code=500, type="server_error"), NO_TOOLS),
    "llama.cpp-schema": (500, openai("JSON schema conversion failed:\nUnrecognized schema: {\"type\":\"any\"}", code=500, type="server_error"), NO_TOOLS),
    "vllm-auto": (400, {"object": "error", "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', "type": "BadRequestError", "param": None, "code": 400}, NO_TOOLS),
    "vllm-required": (400, {"object": "error", "message": 'tool_choice="required" requires --tool-call-parser to be set', "type": "BadRequestError", "code": 400}, NO_TOOLS),
    "ollama-tools": (400, openai("registry.ollama.ai/library/qwen3:latest does not support tools", type="api_error", param=None, code=None), NO_TOOLS),
    "groq-tools": (400, openai("`tool calling` is not supported with this model", type="invalid_request_error"), NO_TOOLS),
    "mistral-tools": (400, {"object": "Error", "message": "Function calling is not enabled for this model", "type": "invalid_request_error", "code": 3051}, NO_TOOLS),
    "google-tools": (400, {"error": {"code": 400, "message": "Function calling is not enabled for models/gemma-3-27b-it", "status": "INVALID_ARGUMENT"}}, NO_TOOLS),
    "deepseek-tools": (400, openai("deepseek-reasoner does not support Function Calling", type="invalid_request_error"), NO_TOOLS),
    "deepseek-choice": (400, openai("deepseek-reasoner does not support this tool_choice", type="invalid_request_error"), NO_TOOLS),
    "litellm-tools": (400, openai("litellm.UnsupportedParamsError: bedrock does not support parameters: ['tools'], for model=mistral.mistral-small-2402-v1:0. To drop these, set `litellm.drop_params=True`", code="400"), NO_TOOLS),
    "bedrock-tools": (400, {"message": "This model doesn't support tool use."}, NO_TOOLS),
    "bedrock-tool-streams": (400, {"message": "This model doesn't support tool use in streaming mode."}, NO_TOOLS),
    "openai-tools": (400, openai("tools is not supported in this model. For a list of supported models, refer to the docs.", type="invalid_request_error"), NO_TOOLS),
    "siliconflow-tools": (400, {"code": 20037, "message": "Function call is not supported for this model.", "data": None}, NO_TOOLS),
    "ollama-thinking": (400, {"error": '"qwen3" does not support thinking'}, ("http_400", "skipped_unavailable", "target", False)),
    "strict-field": (422, {"detail": "unknown field `tools`, expected one of `model`, `messages`"}, NO_TOOLS),
    # the prompt does not fit
    "openai-context": (400, openai("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", code="context_length_exceeded"), CONTEXT),
    "openai-responses-context": (400, openai("Your input exceeds the context window of this model. Please adjust your input and try again.", code="context_length_exceeded"), CONTEXT),
    "vllm-context": (400, {"object": "error", "message": "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request has 2104 input tokens (2000 > 4096 - 2104).", "type": "BadRequestError", "code": 400}, CONTEXT),
    "vllm-decoder": (400, {"object": "error", "message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", "type": "BadRequestError", "code": 400}, CONTEXT),
    "sglang-context": (400, {"object": "error", "message": "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens.", "type": "BadRequestError", "code": 400}, CONTEXT),
    "sglang-input": (400, {"object": "error", "message": "Input length (9000 tokens) exceeds the maximum allowed length (8000 tokens). Use a shorter input or enable --allow-auto-truncate.", "type": "BadRequestError", "code": 400}, CONTEXT),
    "together-context": (400, openai("The input (516368 tokens) is longer than the model's context length (262144 tokens).", type="invalid_request_error"), CONTEXT),
    "together-tgi-context": (422, openai("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 65537. Given: 79993 `inputs` tokens and 1024 `max_new_tokens`", type="invalid_request_error"), CONTEXT),
    "llama.cpp-context": (400, openai("request (8889 tokens) exceeds the available context size (4096 tokens), try increasing it", code=400, type="exceed_context_size_error", n_prompt_tokens=8889, n_ctx=4096), CONTEXT),
    "llama.cpp-older": (500, openai("the request exceeds the available context size. try increasing the context size or enable context shift", code=500, type="server_error"), CONTEXT),
    "llama.cpp-in-the-middle": (500, openai("Context size has been exceeded.", code=500, type="server_error"), CONTEXT),
    "lm-studio-context": (400, {"error": "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input. Error Data: n/a, Additional Data: n/a"}, CONTEXT),
    "lm-studio-keep": (400, {"error": "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}, CONTEXT),
    "lm-studio-n-keep": (400, {"error": "Cannot truncate prompt with n_keep (5000) >= n_ctx (4096)"}, CONTEXT),
    "ollama-older": (400, {"error": "the input length exceeds the context length"}, CONTEXT),
    "ollama-without-shift": (400, {"error": "the prompt is longer than the context length currently available to the model"}, CONTEXT),
    "ollama-context": (400, {"error": "prompt too long; exceeded max context length by 12 tokens"}, CONTEXT),
    "groq-context": (400, openai("Please reduce the length of the messages or completion.", type="invalid_request_error", param="messages", code="context_length_exceeded"), CONTEXT),
    "cerebras-context": (400, {"message": "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192", "code": "too_long"}, CONTEXT),
    "mistral-context": (400, {"object": "error", "message": "Prompt contains 45000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", "type": "invalid_request_prompt", "code": "3051"}, CONTEXT),
    "openrouter-context": (400, openai("This endpoint's maximum context length is 4096 tokens. However, you requested about 9000 tokens (8000 of text input, 1000 in the output).", code=400), CONTEXT),
    "fireworks-context": (400, openai("The prompt is too long: 5000, model maximum context length: 4095", type="invalid_request_error"), CONTEXT),
    "google-context": (400, {"error": {"code": 400, "message": "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", "status": "INVALID_ARGUMENT"}}, CONTEXT),
    "anthropic-context": (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}}, CONTEXT),
    "anthropic-room": (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again"}}, CONTEXT),
    "xai-context": (400, {"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}, CONTEXT),
    "kimi-context": (400, openai("Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)", type="invalid_request_error"), CONTEXT),
    "minimax-context": (400, {"type": "error", "error": {"type": "bad_request_error", "message": "invalid params, context window exceeds limit (2013)"}}, CONTEXT),
    "copilot-context": (400, openai("prompt token count of 200000 exceeds the limit of 128000", code="model_max_prompt_tokens_exceeded"), CONTEXT),
    "github-context": (413, openai("Request body too large for gpt-4o model. Max size: 8000 tokens.", code="tokens_limit_reached"), CONTEXT),
    "zai-context": (400, openai("Prompt exceeds max length", code="1261"), CONTEXT),
    "dashscope-context": (400, openai("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", code="invalid_parameter_error"), CONTEXT),
    "bedrock-context": (400, {"message": "Input is too long for requested model."}, CONTEXT),
    "siliconflow-context": (400, {"code": 20015, "message": "length of prompt_tokens (163280) must be less than max_seq_len (32768).", "data": None}, CONTEXT),
    "text-generation-webui-context": (400, openai("This model maximum context length is 2048 tokens. However, your messages resulted in over 3000 tokens.", type="InvalidRequestError"), CONTEXT),
    # quota and credit
    "openai-quota": (429, openai("You exceeded your current quota, please check your plan and billing details.", type="insufficient_quota", code="insufficient_quota"), QUOTA),
    "openrouter-credits": (402, openai("Insufficient credits. Add more using https://openrouter.ai/settings/credits", code=402), QUOTA),
    "openrouter-key": (403, openai("Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys", code=403), QUOTA),
    "openrouter-free": (429, openai("Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day", code=429), QUOTA),
    "deepseek-balance": (402, openai("Insufficient Balance", type="unknown_error", code="invalid_request_error"), QUOTA),
    "zai-balance": (429, openai("Insufficient balance or no resource package. Please recharge.", code="1113"), QUOTA),
    "litellm-budget": (400, openai("Budget has been exceeded! Current cost: 11.2, Max budget: 10.0", type="budget_exceeded", code="400"), QUOTA),
    "anthropic-credit": (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API."}}, QUOTA),
    "anthropic-limit": (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}, QUOTA),
    "ollama-cloud-limit": (429, {"error": "you've reached your hourly usage limit, please upgrade to continue"}, QUOTA),
    "together-credit": (402, openai("Credit limit exceeded, please navigate to the billing page.", type="credit_limit", code=None), QUOTA),
    "groq-day": (429, openai("Rate limit reached for model `qwen3` in organization `o` service tier `on_demand` on tokens per day (TPD): Limit 100000, Used 99999, Requested 500. Please try again in 7m12s.", type="tokens", code="rate_limit_exceeded"), QUOTA),
    "kimi-quota": (429, openai("Your account is suspended, please check your plan and billing details", type="exceeded_current_quota_error"), QUOTA),
    "google-day": (429, {"error": {"code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}, QUOTA),
    # rate limits
    "groq-minute": (429, openai("Rate limit reached for model `qwen3` on tokens per minute (TPM): Limit 6000, Used 5999, Requested 500.", type="tokens", code="rate_limit_exceeded"), http(429, retried=True)),
    "groq-larger-than-a-minute": (413, openai("Request too large for model `qwen3` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.", type="tokens", code="rate_limit_exceeded"), http(413)),
    "mistral-capacity": (429, {"object": "error", "message": "Service tier capacity exceeded for this model.", "type": "service_tier_capacity_exceeded", "code": "3505"}, http(429, retried=True)),
    "litellm-cooldown": (429, openai("No deployments available for selected model, Try again in 5 seconds. Passed model=qwen3. pre-call-checks=False", type="None", code="429"), http(429, retried=True)),
    "google-minute": (429, {"error": {"code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED"}}, http(429, retried=True)),
    # keys
    "openai-key": (401, openai("Incorrect API key provided: none.", type="invalid_request_error", code="invalid_api_key"), http(401)),
    "google-key": (400, {"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}}, KEY),
    "anthropic-organization": (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "This organization has been disabled."}}, KEY),
    # filters
    "azure-filter": (400, openai("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", code="content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}), FILTER),
    "deepseek-filter": (400, openai("Content Exists Risk", type="invalid_request_error"), FILTER),
    "openrouter-filter": (403, openai("qwen3 requires moderation on Azure. Your input was flagged for \"violence\". No credits were charged.", code=403, metadata={"reasons": ["violence"]}), FILTER),
    "dashscope-filter": (400, openai("Output data may contain inappropriate content.", code="data_inspection_failed"), FILTER),
    # the server itself
    "ollama-runner": (500, {"error": "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, check ollama server logs for details"}, http(500, retried=True)),
    "llama.cpp-loading": (503, openai("Loading model", code=503, type="unavailable_error"), http(503, retried=True)),
    "ollama-busy": (503, {"error": "server busy, please try again. maximum pending requests exceeded"}, http(503, retried=True)),
    "koboldcpp-busy": (503, {"detail": {"msg": "Server is busy; please try again later.", "type": "service_unavailable"}}, http(503, retried=True)),
    "anthropic-overloaded": (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, http(529, retried=True)),
    "lm-studio-crash": (400, {"error": "The model has crashed without additional information. (Exit code: 18446744072635812000)"}, BROKEN),
    "lm-studio-unloaded": (400, {"error": "Model unloaded."}, BROKEN),
    # what would fail again
    "ollama-memory": (500, {"error": "model requires more system memory (5.6 GiB) than is available (3.0 GiB)"}, http(500)),
    "lm-studio-load": (400, openai("Failed to load model \"qwen3\". Error: insufficient system resources", type="invalid_request_error"), http(400)),
    "local-ai-load": (500, openai("could not load model - all backends returned error: 25 errors occurred", code=500, type=""), http(500)),
    "llama.cpp-parse": (500, openai("Failed to parse input at pos 288: <tool_call>", code=500, type="server_error"), http(500)),
    "llama.cpp-parser": (500, openai("Unable to generate parser for this template. Automatic parser generation failed", code=500, type="server_error"), http(500)),
    "llama.cpp-template": (500, openai("Value is not callable: null at row 1, column 72", code=500, type="server_error"), http(500)),
    "llama.cpp-roles": (500, openai("Conversation roles must alternate user/assistant/user/assistant/...", code=500, type="server_error"), http(500)),
    "lm-studio-template": (400, {"error": "Error rendering prompt with jinja template: \"Cannot call something that is not a function: got UndefinedValue\"."}, http(400)),
    "template-500": (500, openai("Failed to load template", code=500, type="server_error"), http(500)),
    "ollama-xml": (500, {"error": "XML syntax error on line 35: element <parameter> closed by </function>"}, http(500)),
    # what only looks like one of these
    "a-tool-that-is-not-found": (404, openai("requested tool does not exist", type="invalid_request_error"), http(404)),
    "a-page-that-is-not-found": (404, {"detail": "Not Found"}, http(404)),
    "an-unknown-level": (400, {"error": 'invalid think value: "x"'}, http(400)),
    "an-unknown-field": (400, openai("Unrecognized request argument supplied: think"), http(400)),
    "an-object-of-no-known-form": (400, {"success": False, "result": {}}, http(400)),
}  # fmt: skip


@pytest.mark.parametrize(("status", "body", "expected"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_by_its_words(server: Any, status: int, body: Any, expected: tuple[Any, ...]) -> None:
    """A server's own words take precedence over its status, and its message is shown."""
    server.enqueue(Script.answer(body, status=status))

    fault = ask(CHAT.provider(server.url), model="qwen3")

    assert isinstance(fault, Fault), fault
    assert (fault.failure_type, fault.status, fault.scope, fault.retryable) == expected
    assert fault.message.rpartition(": ")[2].strip(" .")


IN_A_200 = {
    "quota": ({"error": {"code": 402, "message": "Insufficient credits"}}, QUOTA),
    "rate": ({"error": {"code": 429, "message": "slow down"}}, http(429, retried=True)),
    "vllm-type": ({"error": {"message": "boom", "type": "InternalServerError", "code": 500}}, http(500, retried=True)),
    "groq-status": ({"error": {"message": "no", "type": "invalid_request_error", "status_code": 400}}, http(400)),
    "minimax-balance": ({"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, QUOTA),
    "minimax-key": ({"base_resp": {"status_code": 1004, "status_msg": "login fail: Please carry the API secret key"}}, ("http_401", "auth_error", "target", False)),
    "minimax-unknown": ({"base_resp": {"status_code": 1000, "status_msg": "unknown error"}}, BROKEN),
    "tools": ({"error": "qwen3 does not support tools"}, NO_TOOLS),
    "model": ({"error": "model 'qwen3' not found"}, NO_MODEL),
    "no-model": ({"error": "no route found in the model"}, BROKEN),
    "context": ({"error": "the input length exceeds the context length"}, CONTEXT),
    "no-word": ({"error": {"message": "something"}}, BROKEN),
}  # fmt: skip


@pytest.mark.parametrize(("payload", "expected"), IN_A_200.values(), ids=IN_A_200.keys())
def test_an_error_in_the_place_of_an_answer(
    server: Any, stream: bool, payload: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    """An error in a 200 has no status, so that only its words count; without any it is tried again."""
    server.enqueue(Script.stream(sse(payload)) if stream else Script.answer(payload))

    fault = ask(CHAT.provider(server.url), stream=stream, model="qwen3")

    assert isinstance(fault, Fault), fault
    assert (fault.failure_type, fault.status, fault.scope, fault.retryable) == expected


@pytest.mark.parametrize(
    "name", ["anthropic-context", "google-context", "openrouter-tools", "anthropic-model", "azure-filter"]
)
def test_other_apis_say_the_same(server: Any, api: Api, stream: bool, name: str) -> None:
    """The words mean the same by every API."""
    status, body, expected = ERRORS[name]
    server.enqueue(Script.answer(body, status=status))

    fault = ask(api.provider(server.url), stream=stream, model="qwen3")

    assert isinstance(fault, Fault), fault
    assert (fault.failure_type, fault.status, fault.scope, fault.retryable) == expected


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        pytest.param({"raw": "upstream is down", "provider_name": "Acme"}, "(Acme: upstream is down)", id="text"),
        pytest.param({"raw": '{"error":{"message":"upstream is down"}}'}, "(upstream is down)", id="json-text"),
        pytest.param({"raw": {"message": "upstream is down"}}, "(upstream is down)", id="object"),
        pytest.param({"raw": {"reason": 7}}, '({"reason": 7})', id="another-object"),
        pytest.param({"provider_name": "Acme"}, "returned error", id="none"),
    ],
)  # fmt: skip
def test_the_error_of_the_server_behind_openrouter(server: Any, metadata: Any, said: str) -> None:
    """It is part of the message."""
    server.enqueue(Script.answer(openai("Provider returned error", code=502, metadata=metadata), status=502))

    fault = ask(CHAT.provider(server.url))

    assert described(fault)[:3] == (
        "http_502",
        "error",
        f"ollama_openai: HTTP 502: Provider returned error {said}".replace("error returned error", "error"),
    )


WRITTEN = '<function=exec{"command": "df -h"}</function>'
UNREAD = 'error parsing tool call: raw=\'{"command": "df\', err=unexpected end of JSON input'


@pytest.mark.parametrize("streamed", [True, False])
def test_what_the_model_wrote_is_judged(server: Any, streamed: bool) -> None:
    """Groq's `failed_generation` is the model's reply, whatever became of its call."""
    body = openai(FAILED_GENERATION, code="tool_use_failed", failed_generation=WRITTEN)
    server.enqueue(Script.stream(sse(body, event="error")) if streamed else Script.answer(body, status=400))

    reply = ask(CHAT.provider(server.url), stream=streamed)

    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.raw, reply.finish_reason) == (WRITTEN, WRITTEN, "malformed_call")
    assert reply.timing is not None
    assert server.total == 1


def test_a_call_of_which_ollama_shows_the_text(stream: bool) -> None:
    """A call that its parser cannot read is the model's, also after thinking that was streamed."""
    error = {"error": UNREAD}
    script = answer(lines(said(thinking="hm"), error)) if stream else Script.answer(error, status=500)
    with OllamaServer(lambda _: script) as server:
        reply = ask(native(server.url), stream=stream)

    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.finish_reason) == ('{"command": "df', "malformed_call")
    assert reply.raw == ("<think>\nhm\n</think>\n\n" if stream else "") + '{"command": "df'


def test_a_long_call_is_kept_whole(server: Any) -> None:
    """Messages are shortened; what a model wrote is not."""
    written = json.dumps({"content": "x" * 5000})[:-1]
    server.enqueue(Script.answer({"error": f"error parsing tool call: raw='{written}', err=x"}, status=500))

    reply = ask(CHAT.provider(server.url))

    assert isinstance(reply, Reply), reply
    assert reply.text == written


def test_a_404_names_the_address(server: Any, api: Api, stream: bool) -> None:
    """A path that the server does not have is shown as it was asked for, without its query."""
    server.enqueue(Script.answer({"detail": "Not Found"}, status=404))

    fault = ask(api.provider(server.url), stream=stream)

    assert isinstance(fault, Fault), fault
    asked = server.requests[0].path.partition("?")[0]
    assert fault.message.endswith(f"Not Found. The request went to {server.origin}{asked}.")
