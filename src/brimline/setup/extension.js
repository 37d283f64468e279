import { spawn } from "node:child_process"
import { statSync } from "node:fs"
import { connect } from "node:net"

const TOLD = "@TOLD@"
const NOBODY = ["ENOENT", "ECONNREFUSED"]
const FIRST_LINE = /^BRIMLINE 1 ([0-9]{1,7})(?: ([0-9]{1,7}))?$/
const DONE = "\x06" // the agent has the answer; the daemon sends it back when it has stored that
let events = 0

/** Tells what happens; gives what the agent is to read, if anything. It never fails nor prints. */
async function tell(event) {
  const id = `${BigInt(Date.now()) * 1_000_000n + BigInt(events++)}-${process.pid}`
  const body = Buffer.from(JSON.stringify(event))
  try {
    return read(await asked(id, body))
  } catch (error) {
    const starts = event.hook_event_name === "SessionStart" && NOBODY.includes(error.code)
    await alone(id, body, starts && TOLD.autostart ? "start" : "hook")
    return undefined
  }
}

/** The daemon's answer; fails where none comes in time, or where another user listens. */
function asked(id, body) {
  return new Promise((resolve, reject) => {
    if (statSync(TOLD.socket).uid !== process.geteuid()) throw new Error("another user's")
    const said = []
    let receipt // of an answer that the agent has, until the daemon has confirmed it
    const late = () => line.destroy()
    let timer = setTimeout(late, TOLD.patience)
    const line = connect(TOLD.socket, () => {
      clearTimeout(timer)
      // What came while the agent was busy is read before it is too late.
      timer = setTimeout(() => setImmediate(late), TOLD.answer)
    })
    line.on("error", reject)
    line.on("close", () => {
      clearTimeout(timer)
      if (receipt) alone(id, receipt, "delivered")
      reject(new Error("no answer"))
    })
    line.on("data", (part) => {
      if (receipt) {
        if (part.includes(DONE)) receipt = undefined
        line.end()
        return
      }
      said.push(part)
      const answer = whole(Buffer.concat(said))
      if (answer === null) line.destroy()
      if (answer == null) return
      resolve(answer.text)
      if (answer.receipt.length === 0) {
        line.end(DONE)
        return
      }
      receipt = answer.receipt
      line.write(DONE)
      clearTimeout(timer)
      timer = setTimeout(late, TOLD.answer)
    })
    line.write(framed(id, body))
  })
}

/** A request, as frame.py has it. */
function framed(id, body) {
  const told = ["kind=hook", `agent=${TOLD.agent}`, `id=${id}`, `pid=${process.pid}`]
  told.push("receipt=1")
  for (const name of TOLD.names) {
    const value = process.env[name]
    if (value !== undefined && Buffer.byteLength(value) <= TOLD.longest.value) {
      told.push(`env.${name}=${value}`)
    }
  }
  const header = Buffer.from(told.map((entry) => `${entry}\0`).join(""))
  const line = Buffer.from(`BRIMLINE 1 ${header.length} ${body.length}\n`)
  return Buffer.concat([line, header, body])
}

/** An answer's text and receipt; undefined while it is not all there, null where it is none. */
function whole(data) {
  const end = data.indexOf("\n")
  if (end < 0) return data.length < TOLD.longest.line ? undefined : null
  const found = FIRST_LINE.exec(data.subarray(0, end).toString())
  const [text, receipt] = [Number(found?.[1]), Number(found?.[2] ?? 0)]
  if (!(text <= TOLD.longest.reply && receipt <= TOLD.longest.reply)) return null
  const [begin, middle] = [end + 1, end + 1 + text]
  if (data.length < middle + receipt) return undefined
  return {
    text: data.subarray(begin, middle).toString(),
    receipt: data.subarray(middle, middle + receipt),
  }
}

/** Goes on without the daemon, for which what happened is kept. */
function alone(id, body, kind) {
  return new Promise((resolve) => {
    const [program, ...words] = TOLD.alone
    const more = ["--no-daemon", id, kind, TOLD.agent, TOLD.socket, TOLD.spool]
    const client = spawn(program, [...words, ...more], { stdio: ["pipe", "ignore", "ignore"] })
    const end = () => {
      clearTimeout(timer)
      client.kill("SIGKILL")
      resolve()
    }
    const timer = setTimeout(end, TOLD.patience)
    client.on("error", end)
    client.on("close", end)
    client.stdin.on("error", () => {}) // it may be gone before it has read everything
    client.stdin.end(body)
  }).catch(() => undefined)
}

function read(said) {
  try {
    const answer = JSON.parse(said)
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
