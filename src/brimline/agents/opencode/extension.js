import { readdirSync } from "node:fs"
import { homedir } from "node:os"
import { join, resolve } from "node:path"

const PART = "/session/{sessionID}/message/{messageID}/part/{partID}"
const HEAD = 16 // of an id: what sorts it

/** The database that this opencode writes: the one whose log is the newest. */
function database() {
  const folder = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "opencode")
  if (process.env.OPENCODE_DB) return resolve(folder, process.env.OPENCODE_DB)
  const written = (file) => statSync(join(folder, file)).mtimeMs
  const logs = readdirSync(folder).filter((name) => /^opencode.*\.db-wal$/.test(name))
  const [newest] = logs.sort((one, other) => written(other) - written(one))
  return newest && join(folder, newest.slice(0, -"-wal".length))
}

/** What opencode itself is asked may not hold it up either. */
const soon = (answer) => {
  const late = new Promise((_, fail) => setTimeout(fail, TOLD.patience).unref())
  return Promise.race([answer, late])
}

/** Where a text can be added to the conversation's last message, and how. */
function slot({ info, parts }) {
  const last = parts.findLast((part) => part.type === "tool" || info.role === "user")
  if (!last) return undefined
  if (info.role === "user") return (text) => added(parts, last, text)
  const field = { completed: "output", error: "error" }[last.state.status]
  if (!field) return undefined
  return (text) => {
    last.state[field] += `\n\n${text}`
    return last
  }
}

function added(parts, { id, sessionID, messageID }, text) {
  const after = id.slice(0, HEAD).padEnd(id.length, "z")
  const part = { id: after, sessionID, messageID, type: "text", text, synthetic: true }
  parts.push(part)
  return part
}

export const Brimline = async ({ client, directory }) => {
  const parents = new Map() // of each session, null where it has none
  const started = new Set()
  const summing = new Set() // whose summary is about to be asked for
  let windows

  const ask = (name, session, more) =>
    tell({
      hook_event_name: name,
      session_id: session,
      transcript_path: database(),
      cwd: directory,
      ...more,
    })

  async function isMain(session) {
    if (!parents.has(session)) {
      const found = await soon(client.session.get({ path: { id: session } }))
      parents.set(session, found.data.parentID ?? null)
    }
    return parents.get(session) === null
  }

  /** The windows of all models, by provider and model. */
  const limits = quiet(async () => {
    const { data } = await soon(client.config.providers())
    const rows = data.providers.flatMap(({ id, models }) =>
      Object.entries(models).map(([name, one]) => [`${id}/${name}`, one.limit?.context]),
    )
    return new Map(rows)
  })

  /** The model that a message is of or for. */
  async function model({ providerID, modelID }) {
    windows ??= limits()
    return { model: modelID, context_window: (await windows)?.get(`${providerID}/${modelID}`) }
  }

  /** Have a part stored as it is now: later requests are made from what is stored. */
  const keep = (part) => {
    const path = { sessionID: part.sessionID, messageID: part.messageID, partID: part.id }
    const headers = { "Content-Type": "application/json" }
    return soon(client._client.patch({ url: PART, path, body: part, headers }))
  }

  const heard = {
    "session.created": ({ info }) => void parents.set(info.id, info.parentID ?? null),
    "session.compacted": async ({ sessionID }) => {
      if (await isMain(sessionID)) await ask("PostCompact", sessionID)
    },
    "session.idle": async ({ sessionID }) => {
      if (started.has(sessionID)) await ask("Stop", sessionID)
    },
  }

  return {
    event: quiet(({ event }) => heard[event.type]?.(event.properties)),

    "shell.env": quiet(async ({ sessionID }, { env }) => {
      if (sessionID && (await isMain(sessionID))) env.OPENCODE_SESSION_ID = sessionID
    }),

    "experimental.session.compacting": quiet(async ({ sessionID }) => {
      summing.add(sessionID)
      if (await isMain(sessionID)) await ask("PreCompact", sessionID)
    }),

    "experimental.chat.messages.transform": quiet(async (_, { messages }) => {
      const last = messages.at(-1)
      const session = last.info.sessionID
      if (summing.delete(session) || !(await isMain(session))) return
      const put = slot(last)
      const known = await model(last.info.model ?? last.info)
      if (!started.has(session)) await ask("SessionStart", session, known)
      started.add(session)
      if (!put) return
      const name = last.info.role === "user" ? "UserPromptSubmit" : "PostToolUse"
      const text = await ask(name, session, known)
      if (text) await keep(put(text))
    }),

    dispose: quiet(() => Promise.all([...started].map((session) => ask("SessionEnd", session)))),
  }
}
