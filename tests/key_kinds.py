"""Made-up keys and passwords of many kinds, composed here so that none stands in a file."""

from __future__ import annotations

import base64
import json
import random
import re
import string

_CHANCE = random.Random(7)
_HEX = "0123456789abcdef"
_SMALL, _CAPITAL = string.ascii_lowercase, string.ascii_uppercase
_ALL = string.ascii_letters + string.digits


def _some(count: int, of: str = _ALL) -> str:
    """Give characters by lot, a digit, a small and a capital letter among them where there may be."""
    found = [_CHANCE.choice(of) for _ in range(count)]
    for at, kind in enumerate((string.digits, _SMALL, _CAPITAL)):
        if among := sorted(set(kind) & set(of)):
            found[count // 2 + at] = _CHANCE.choice(among)
    return "".join(found)


def _part_of_jwt(said: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")


KINDS: dict[str, str] = {
    "Hugging Face": "hf" + "_" + _some(34, string.ascii_letters),
    "OpenAI": "sk" + "-" + _some(48),
    "OpenAI project": "sk" + "-proj-" + _some(74),
    "Anthropic": "sk" + "-ant-api03-" + _some(95),
    "OpenRouter": "sk" + "-or-v1-" + _some(64, _HEX),
    "Google": "AI" + "za" + _some(35),
    "Google OAuth": "ya" + "29." + _some(60),
    "Groq": "gs" + "k_" + _some(52),
    "xAI": "xa" + "i-" + _some(80),
    "Replicate": "r8" + "_" + _some(37),
    "Perplexity": "pp" + "lx-" + _some(48),
    "Together": "tgp" + "_v1_" + _some(43),
    "Fireworks": "fw" + "_" + _some(24),
    "NVIDIA": "nv" + "api-" + _some(64),
    "Cerebras": "c" + "sk-" + _some(48, _SMALL + string.digits),
    "Databricks": "da" + "pi" + _some(32, _HEX),
    "LangSmith": "ls" + "v2_pt_" + _some(32, _HEX) + "_" + _some(10, _HEX),
    "AWS id": "AK" + "IA" + _some(16, _CAPITAL + string.digits),
    "AWS secret": "aws_secret_access" + '_key = "' + _some(40) + '"',
    "Azure storage": "Account" + "Key=" + _some(86) + "==",
    "Azure OpenAI": "api" + "-key: " + _some(32, _HEX),
    "GitHub": "gh" + "p_" + _some(36),
    "GitHub fine-grained": "github" + "_pat_" + _some(22) + "_" + _some(59),
    "GitLab": "gl" + "pat-" + _some(20),
    "npm": "np" + "m_" + _some(36),
    "PyPI": "py" + "pi-AgEIcHlwaS5vcmc" + _some(80),
    "Docker": "dc" + "kr_pat_" + _some(27),
    "Slack": "xo" + "xb-" + "-".join(_some(12, string.digits) for _ in range(2)) + "-" + _some(24),
    "Slack hook": "https://hooks.slack" + ".com/services/T" + _some(8) + "/B" + _some(8) + "/" + _some(24),
    "Stripe": "sk" + "_live_" + _some(24),
    "SendGrid": "S" + "G." + _some(22) + "." + _some(43),
    "Twilio": "S" + "K" + _some(32, _HEX),
    "Telegram": _some(9, "123456789") + ":" + _some(35),
    "JWT": _part_of_jwt({"alg": "HS256"}) + "." + _part_of_jwt({"sub": "1"}) + "." + _some(43),
    "bearer": "Authorization: " + "Bearer " + _some(40),
    "password in an address": "http://user:" + _some(9) + "@host.example:8000/v1",
    "token in an address": "https://" + _some(40) + "@host.example/a",
    "key in an address": "https://host.example/v1?api" + "_key=" + _some(24),
    "private key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + _some(64),
    "Vault": "hv" + "s." + _some(90),
    "Alibaba": "LT" + "AI5t" + _some(18),
    "Baidu": "bce" + "-v3/ALTAK-" + _some(21) + "/" + _some(40, _HEX),
    "Tencent": "AK" + "ID" + _some(32),
    "Yandex": "AQ" + "VN" + _some(36),
    "Modal": "ak" + "-" + _some(22),
    "RunPod": "rp" + "a_" + _some(46, _CAPITAL + string.digits),
    "E2B": "e2" + "b_" + _some(40, _HEX),
    "Kaggle": "KG" + "AT_" + _some(32, _HEX),
    "Mailgun": "ke" + "y-" + _some(32, _HEX),
    "Postman": "PM" + "AK-" + _some(24, _HEX) + "-" + _some(34, _HEX),
    "Atlassian": "AT" + "ATT3xFfGF0" + _some(180),
    "Heroku": "HR" + "KU-AA" + _some(58),
    "Entra": "a1B" + "8" + "Q~" + _some(34),
    "Amazon session": "FwoGZX" + "IvYXdzE" + _some(200),
    "Discord hook": "https://discord" + ".com/api/webhooks/" + _some(18, "123456789") + "/" + _some(68),
    "key in JSON in JSON": json.dumps(json.dumps({"api" + "_key": _some(32)})),
}  # fmt: skip
"""Keys by what they are."""

IN_PARTS = {
    "Zhipu": _some(32, _HEX) + "." + _some(16),
    "Airtable": "pa" + "t" + _some(14) + "." + _some(64, _HEX),
    "Doppler": "dp" + ".pt." + _some(43),
}
"""Keys with dots in them, which ``--set`` takes for places."""


def key_part(key: str) -> str:
    """Give the part of a key that nobody may see, wherever it turns up."""
    return max(re.findall(r"[\w-]+", key), key=len)[-9:]
