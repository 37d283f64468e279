"""A small MCP server over stdio: NAME, the number of its tools, the words of each, a delay."""

import json
import sys
import time
from typing import Any

NAME, TOOLS, TIMES, DELAY_S = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": NAME, "version": "1"},
                "instructions": f"Ask {NAME} about the tides of a harbour. " * TIMES,
            }
        case "tools/list":
            return {"tools": [tool(number) for number in range(TOOLS)]}
        case _:
            return {"content": [{"type": "text", "text": "High water."}]}


def tool(number: int) -> dict[str, Any]:
    harbour = {"type": "string", "description": "The name of a harbour."}
    return {
        "name": f"tide_{number}",
        "description": f"Tool {number} of {NAME} returns high or low water. " * TIMES,
        "inputSchema": {"type": "object", "properties": {"harbour": harbour}},
    }


def main() -> None:
    time.sleep(DELAY_S)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        head = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] in ("initialize", "tools/list", "tools/call"):
            reply = {"result": answer(asked["method"], asked.get("params", {}))}
        else:
            reply = {"error": {"code": -32601, "message": "not here"}}
        print(json.dumps(head | reply), flush=True)


if __name__ == "__main__":
    main()
