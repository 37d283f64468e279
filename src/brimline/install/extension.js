import { spawn } from "node:child_process"
import { statSync } from "node:fs"
import { connect } from "node:net"

const CONFIG = "@CONFIG@"
const NO_DAEMON = ["ENOENT", "ECONNREFUSED"]
const FIRST_LINE = /^BRIMLINE 1 ([0-9]{1,7})(?: ([0-9]{1,7}))?$/
const ACK = "\x06" // the agent has the answer; the daemon sends it back when it has stored that
let events = 0

/** Reports an event; returns the text for the agent, if any. Never throws nor prints. */
async function reportEvent(event) {
  const id = `${BigInt(Date.now()) * 1_000_000n + BigInt(events++)}-${process.pid}`
  const body = Buffer.from(JSON.stringify(event))
  try {
    return answerText(await requestDaemon(id, body))
  } catch (error) {
    const starts = CONFIG.autostart && NO_DAEMON.includes(error.code)
    const startKind = event.hook_event_name === "SessionStart" ? "start" : "hook-restart"
    const spooled = spool(id, body, starts ? startKind : "hook")
    await Promise.race([spooled, wait(CONFIG.spoolWaitMs)]) // it goes on without the agent
    return undefined
  }
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Returns the daemon's answer; rejects if none comes in time, or if another user listens. */
function requestDaemon(id, body) {
  return new Promise((resolve, reject) => {
    if (statSync(CONFIG.socket).uid !== process.geteuid()) throw new Error("another user's socket")
    const chunks = []
    let receipt // of an answer that the agent has, until the daemon has confirmed it
    const close = () => connection.destroy()
    let timer = setTimeout(close, CONFIG.timeoutMs)
    const connection = connect(CONFIG.socket, () => {
      clearTimeout(timer)
      // An answer that came while the agent was busy is read before the connection is closed.
      timer = setTimeout(() => setImmediate(close), CONFIG.answerTimeoutMs)
    })
    connection.on("error", reject)
    connection.on("close", () => {
      clearTimeout(timer)
      if (receipt) spool(id, receipt, "delivered")
      reject(new Error("no answer"))
    })
    connection.on("data", (chunk) => {
      if (receipt) {
        if (chunk.includes(ACK)) receipt = undefined
        connection.end()
        return
      }
      chunks.push(chunk)
      const answer = parseAnswer(Buffer.concat(chunks))
      if (answer === null) close()
      if (answer == null) return
      resolve(answer.text)
      if (answer.receipt.length === 0) {
        connection.end(ACK)
        return
      }
      receipt = answer.receipt
      connection.write(ACK)
      clearTimeout(timer)
      timer = setTimeout(close, CONFIG.answerTimeoutMs)
    })
    connection.write(encodeRequest(id, body))
  })
}

/** Returns a request as hooks/protocol.py describes it. */
function encodeRequest(id, body) {
  const entries = ["kind=hook", `agent=${CONFIG.agent}`, `id=${id}`, `pid=${process.pid}`]
  entries.push("receipt=1")
  for (const name of CONFIG.variables) {
    const value = process.env[name]
    if (value !== undefined && Buffer.byteLength(value) <= CONFIG.maxValueBytes) {
      entries.push(`env.${name}=${value}`)
    }
  }
  const header = Buffer.from(entries.map((entry) => `${entry}\0`).join(""))
  const line = Buffer.from(`BRIMLINE 1 ${header.length} ${body.length}\n`)
  return Buffer.concat([line, header, body])
}

/** Returns an answer's text and receipt; undefined if it is incomplete, null if it is invalid. */
function parseAnswer(data) {
  const lineEnd = data.indexOf("\n")
  if (lineEnd < 0) return data.length < CONFIG.maxLineBytes ? undefined : null
  const sizes = FIRST_LINE.exec(data.subarray(0, lineEnd).toString())
  const [textSize, receiptSize] = [Number(sizes?.[1]), Number(sizes?.[2] ?? 0)]
  if (!(textSize <= CONFIG.maxReplyBytes && receiptSize <= CONFIG.maxReplyBytes)) return null
  const textEnd = lineEnd + 1 + textSize
  if (data.length < textEnd + receiptSize) return undefined
  return {
    text: data.subarray(lineEnd + 1, textEnd).toString(),
    receipt: data.subarray(textEnd, textEnd + receiptSize),
  }
}

/** Runs the hook client, which appends the event to the spool. Never rejects. */
function spool(id, body, kind) {
  return new Promise((resolve) => {
    const words = [CONFIG.agent, kind, id]
    const client = spawn(CONFIG.launcher, words, { stdio: ["pipe", "ignore", "ignore"] })
    const end = () => {
      clearTimeout(timer)
      client.kill("SIGKILL")
      resolve()
    }
    const timer = setTimeout(end, CONFIG.timeoutMs)
    client.on("error", end)
    client.on("close", end)
    client.stdin.on("error", () => {}) // the client may exit before it has read everything
    client.stdin.end(body)
  }).catch(() => undefined)
}

function answerText(answer) {
  try {
    const reply = JSON.parse(answer)
    return reply.reason ?? reply.hookSpecificOutput?.additionalContext
  } catch {
    return undefined // most answers are empty
  }
}

/** Returns the size of texts, as the daemon estimates their tokens. */
const bytesOf = (texts) => texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ""), 0)

/** Returns a handler that never throws into the agent. */
const guarded = (handle) => async (...values) => {
  try {
    return await handle(...values)
  } catch {
    return undefined
  }
}
