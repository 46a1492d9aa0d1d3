"""A Hugging Face Hub on loopback, for tests of the real clients.

    with HubServer() as hub:
        hub.repos["acme/prompts"] = Repo({"README.md": b"..."})
        run_something(env=hub.environment(home))

It speaks what `huggingface_hub` and `datasets` ask of a Hub for data sets: repositories, branches and
commits, files small (in the commit) and large (by LFS), private repositories, and rights by token.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from loopback_server import LoopbackServer, body_of, give

TOKEN = "hf_" + "Loopback0" * 4
"""The token that may write; it must turn up in no output."""
READER = "hf_" + "Reading0" * 4
"""A valid token with no rights to write."""

Files = dict[str, bytes]
_COMMITS = itertools.count()


@dataclass
class Repo:
    """A repository: the files of each commit, and the commit of each branch."""

    files: Files = field(default_factory=dict)
    private: bool = False
    commits: dict[str, Files] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.commit("main", {".gitattributes": b"*.parquet filter=lfs\n", **self.files}, "initial")

    def commit(self, branch: str, files: Files, message: str) -> str:
        self.messages.append(message)
        # As on the Hub, no two commits share one: clients take what they have of a commit as final.
        sha = hashlib.sha1(str(next(_COMMITS)).encode()).hexdigest()
        self.commits[sha], self.branches[branch] = files, sha
        return sha

    def sha(self, revision: str) -> str | None:
        sha = self.branches.get(revision, revision)
        return sha if sha in self.commits else None

    def now(self, branch: str = "main") -> Files:
        return self.commits[self.branches[branch]]


@dataclass
class Fault:
    """What goes wrong with the next requests whose `METHOD path` matches a pattern.

    `act` is a status to answer, with a message and the Hub's code for it; "cut" to close the connection in the middle of what is sent; or
    "lose" to do what is asked and close the connection before the answer.
    """

    pattern: str
    act: int | str
    message: str = ""
    times: int = 1
    code: str = ""


class _Answer(Exception):
    def __init__(self, status: int, value: Any = None, **headers: str) -> None:
        self.status, self.headers = status, {key.replace("_", "-"): v for key, v in headers.items()}
        self.body = value if isinstance(value, bytes) else json.dumps(value or {}).encode()


class HubServer(LoopbackServer):
    """Serve a Hub on a free loopback port while the `with` block lasts."""

    def __init__(self) -> None:
        super().__init__()
        self.repos: dict[str, Repo] = {}
        self.large: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.faults: list[Fault] = []
        self.before: Callable[[str], None] = lambda request: None
        """Called with each request's `METHOD path` before it is served."""

    def serve(self, asked: BaseHTTPRequestHandler) -> None:
        request = f"{asked.command} {asked.path}"
        fault = self.fault(request)
        if fault and fault.act == "cut":
            asked.rfile.read(int(asked.headers.get("Content-Length", 0)) // 2)
            asked.close_connection = True
            return
        body = body_of(asked)
        if fault and isinstance(fault.act, int):
            headers = {"X-Error-Code": fault.code} if fault.code else {}
            answer = _Answer(fault.act, {"error": fault.message}, **headers)
        else:
            token = asked.headers.get("Authorization", "").removeprefix("Bearer ") or None
            answer = self.answer(asked.command, asked.path, body, token)
            if fault:
                asked.close_connection = True
                return
        headers = {"Content-Type": "application/json", **answer.headers}
        give(asked, answer.status, answer.body, headers)

    def environment(self, home: Path, token: str | None = TOKEN) -> dict[str, str]:
        """Give the environment in which a process's Hub is this one, signed in with a token."""
        return {
            "HF_ENDPOINT": self.address,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            **({"HF_TOKEN": token} if token else {}),
        }

    def fault(self, request: str) -> Fault | None:
        with self._lock:
            self.requests.append(request)
            for fault in self.faults:
                if fault.times and re.search(fault.pattern, request):
                    fault.times -= 1
                    return fault
        return None

    def answer(self, method: str, path: str, body: bytes, token: str | None) -> _Answer:
        self.before(f"{method} {path}")
        try:
            with self._lock:
                self._serve(method, unquote(urlsplit(path).path), body, token)
        except _Answer as answer:
            return answer
        return _Answer(404)

    def _serve(self, method: str, path: str, body: bytes, token: str | None) -> None:
        if token not in (TOKEN, READER, None):
            raise _Answer(401, {"error": "Invalid credentials in Authorization header"},
                          X_Error_Message="Invalid credentials in Authorization header")  # fmt: skip
        # An upload by LFS goes to storage that is opened by the address it was given.
        writes = method == "POST" and "/paths-info/" not in path
        if writes and path != "/api/validate-yaml" and token != TOKEN:
            raise _Answer(403 if token else 401, {"error": "You don't have the rights to do that"})
        if path == "/api/repos/create":
            self._create(json.loads(body))
        if path == "/api/validate-yaml":
            self._validate(json.loads(body))
        if found := re.fullmatch(r"/lfs/(\w+)", path):
            if hashlib.sha256(body).hexdigest() != found[1]:
                raise _Answer(400, {"error": "that is another file"})
            self.large[found[1]] = body
            raise _Answer(200)
        if found := re.fullmatch(r"/datasets/([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            self._batch(json.loads(body))
        if found := re.match(r"(?:/api)?/datasets/([^/]+/[^/]+)(?:/(.*))?$", path):
            name, rest = found[1], found[2] or ""
            repo = self.repos.get(name)
            if repo is None or (repo.private and token is None):
                raise _Answer(404 if token else 401, {"error": "Repository not found"},
                              X_Error_Code="RepoNotFound")  # fmt: skip
            self._of_repo(name, repo, rest, body)

    def _create(self, wish: dict[str, Any]) -> None:
        name = f"{wish['organization']}/{wish['name']}"
        if name in self.repos:
            raise _Answer(409, {"error": "You already created this dataset repo"})
        self.repos[name] = Repo(private=wish.get("visibility") == "private")
        raise _Answer(200, {"url": f"{self.address}/datasets/{name}", "name": name})

    def _validate(self, wish: dict[str, Any]) -> None:
        licence = re.search(r"^license: (.*)$", wish["content"], re.MULTILINE)
        if licence and licence[1] not in ("mit", "apache-2.0", "cc-by-4.0"):
            message = f'"license" must be one of the known ones, not {licence[1]}'
            raise _Answer(400, {"errors": [{"message": message}], "warnings": []})
        raise _Answer(200, {"errors": [], "warnings": []})

    def _batch(self, wish: dict[str, Any]) -> None:
        objects = [
            {**item} if item["oid"] in self.large
            else {**item, "actions": {"upload": {"href": f"{self.address}/lfs/{item['oid']}"}}}
            for item in wish["objects"]
        ]  # fmt: skip
        raise _Answer(200, {"transfer": "basic", "objects": objects})

    def _of_repo(self, name: str, repo: Repo, rest: str, body: bytes) -> None:
        verb, _, tail = rest.partition("/")
        if verb == "branch":
            if tail in repo.branches:
                raise _Answer(409, {"error": "Reference already exists"})
            repo.branches[tail] = repo.branches["main"]
            raise _Answer(200)
        revision, _, place = tail.partition("/") if tail else ("main", "", "")
        sha = repo.sha(revision)
        if sha is None:
            raise _Answer(404, {"error": "Invalid rev id"}, X_Error_Code="RevisionNotFound")
        files = repo.commits[sha]
        match verb:
            case "" | "revision":
                siblings = [{"rfilename": path} for path in files]
                raise _Answer(200, {"id": name, "sha": sha, "private": repo.private,
                                    "tags": [], "siblings": siblings})  # fmt: skip
            case "tree":
                within = {p: c for p, c in files.items() if not place or p.startswith(f"{place}/")}
                if not within:
                    raise _Answer(404, X_Error_Code="EntryNotFound")
                raise _Answer(200, [_entry(path, content) for path, content in within.items()])
            case "paths-info":
                wish = json.loads(body) if body[:1] == b"{" else parse_qs(body.decode())
                raise _Answer(200, [_entry(p, files[p]) for p in wish["paths"] if p in files])
            case "resolve":
                if place not in files:
                    raise _Answer(404, X_Error_Code="EntryNotFound", X_Repo_Commit=sha)
                etag = f'"{_oid(place, files[place])}"'
                raise _Answer(200, files[place], X_Repo_Commit=sha, ETag=etag)
            case "preupload":
                raise _Answer(200, {"files": [
                    {"path": (path := item["path"]), "shouldIgnore": False,
                     "uploadMode": "lfs" if path.endswith(".parquet") else "regular",
                     "oid": _oid(path, files[path]) if path in files else None}
                    for item in json.loads(body)["files"]
                ]})  # fmt: skip
            case "commit":
                self._commit(name, repo, revision, [json.loads(line) for line in body.splitlines()])

    def _commit(self, name: str, repo: Repo, branch: str, lines: list[dict[str, Any]]) -> None:
        head, *operations = lines
        if head["value"].get("parentCommit") not in (None, repo.branches[branch]):
            raise _Answer(
                412, {"error": "A commit has happened since. Please refresh and try again."}
            )
        files = dict(repo.now(branch))
        for operation in operations:
            value = operation["value"]
            match operation["key"]:
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = self.large[value["oid"]]
                case "deletedFile":
                    del files[value["path"]]
        sha = repo.commit(branch, files, head["value"]["summary"])
        url = f"{self.address}/datasets/{name}/commit/{sha}"
        raise _Answer(200, {"success": True, "commitOid": sha, "commitUrl": url})


def _oid(path: str, content: bytes) -> str:
    """Give what the Hub knows a file by: git's hash, or SHA-256 for large ones."""
    if path.endswith(".parquet"):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _entry(path: str, content: bytes) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": len(content), "oid": _oid(path, content)}
