import { spawn } from "node:child_process"

const COMMANDS = "@COMMANDS@"
const PATIENCE = 1_000 * COMMANDS.hook.timeout

/** Tells what happens; gives what the agent is to read, if anything. It never fails nor prints. */
function tell(event) {
  return new Promise((resolve) => {
    const said = []
    const kind = event.hook_event_name === "SessionStart" ? "start" : "hook"
    const [program, ...words] = COMMANDS[kind].args
    const client = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"] })
    const end = () => {
      clearTimeout(timer)
      client.kill("SIGKILL")
      resolve(read(said))
    }
    const timer = setTimeout(end, PATIENCE)
    client.on("error", end)
    client.on("close", end)
    client.stdin.on("error", () => {}) // it may be gone before it has read everything
    client.stdout.on("data", (part) => said.push(part))
    client.stdin.end(JSON.stringify(event))
  }).catch(() => undefined)
}

function read(said) {
  try {
    const answer = JSON.parse(Buffer.concat(said).toString())
    return answer.reason ?? answer.hookSpecificOutput?.additionalContext
  } catch {
    return undefined // mostly there is nothing to say
  }
}

/** A handler whose failure is not the agent's. */
const quiet = (handle) => async (...given) => {
  try {
    return await handle(...given)
  } catch {
    return undefined
  }
}
