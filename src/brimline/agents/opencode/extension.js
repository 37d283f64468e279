import { readdirSync } from "node:fs"
import { homedir } from "node:os"
import { join, resolve } from "node:path"

const PART_URL = "/session/{sessionID}/message/{messageID}/part/{partID}"
const SORTED_ID_CHARS = 16 // opencode sorts parts by the beginning of their id

const NAME = CONFIG.agent // opencode, or a fork of it, with folders and variables of its own
const VARIABLES = NAME.toUpperCase()

/** Returns the database that this client writes: the one whose log is the newest. */
function databasePath() {
  const folder = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), NAME)
  const named = process.env[`${VARIABLES}_DB`]
  if (named) return resolve(folder, named)
  const modified = (file) => statSync(join(folder, file)).mtimeMs
  const isLog = (name) => name.startsWith(NAME) && name.endsWith(".db-wal")
  const logs = readdirSync(folder).filter(isLog)
  const [newest] = logs.sort((one, other) => modified(other) - modified(one))
  return newest && join(folder, newest.slice(0, -"-wal".length))
}

/** Rejects if opencode's own API takes too long: it must not block opencode either. */
const inTime = (answer) => {
  const late = new Promise((_, reject) => setTimeout(reject, CONFIG.timeoutMs).unref())
  return Promise.race([answer, late])
}

/** Returns a function that adds a text to a message and returns the changed part, if it can. */
function textAdder({ info, parts }) {
  const last = parts.findLast((part) => part.type === "tool" || info.role === "user")
  if (!last) return undefined
  if (info.role === "user") return (text) => addPart(parts, last, text)
  const field = { completed: "output", error: "error" }[last.state.status]
  if (!field) return undefined
  return (text) => {
    last.state[field] += `\n\n${text}`
    return last
  }
}

/** Returns the texts that a message adds to the next request: a prompt, or results of tools. */
const addedTexts = ({ info, parts }) =>
  parts.map(({ text, state }) => (info.role === "user" ? text : (state?.output ?? state?.error)))

function addPart(parts, { id, sessionID, messageID }, text) {
  const nextId = id.slice(0, SORTED_ID_CHARS).padEnd(id.length, "z")
  const part = { id: nextId, sessionID, messageID, type: "text", text, synthetic: true }
  parts.push(part)
  return part
}

export const Brimline = async ({ client, directory }) => {
  const parents = new Map() // by session; null if it has none
  const started = new Set()
  const compacting = new Set() // sessions whose next request is for a summary
  let sizes
  let compaction // the report of the last one, without whose handoff no request begins

  const report = (name, session, details) =>
    reportEvent({
      hook_event_name: name,
      session_id: session,
      transcript_path: databasePath(),
      cwd: directory,
      ...details,
    })

  async function isMain(session) {
    if (!parents.has(session)) {
      const { data } = await inTime(client.session.get({ path: { id: session } }))
      parents.set(session, data.parentID ?? null)
    }
    return parents.get(session) === null
  }

  /** A ChatGPT plan, whose prices are 0, has no more than the input limit (1.18.18). */
  const windowOf = (id, { limit, cost }) =>
    id === "openai" && cost?.input === 0 ? (limit?.input ?? limit?.context) : limit?.context

  /** Returns what decides when a model is compacted. */
  const sizesOf = (id, model) => ({
    context_window: windowOf(id, model),
    max_output: model.limit?.output || undefined,
    input_limit: model.limit?.input || undefined,
  })

  /** Returns the sizes of all models, by provider and model. */
  const readSizes = guarded(async () => {
    const { data } = await inTime(client.config.providers())
    const rows = data.providers.flatMap(({ id, models }) =>
      Object.entries(models).map(([name, model]) => [`${id}/${name}`, sizesOf(id, model)]),
    )
    return new Map(rows)
  })

  async function describeModel({ providerID, modelID }) {
    sizes ??= readSizes()
    return { model: modelID, ...(await sizes)?.get(`${providerID}/${modelID}`) }
  }

  /** Stores a part as it is now: later requests are made from what is stored. */
  const storePart = (part) => {
    const path = { sessionID: part.sessionID, messageID: part.messageID, partID: part.id }
    const headers = { "Content-Type": "application/json" }
    return inTime(client._client.patch({ url: PART_URL, path, body: part, headers }))
  }

  const reportCompaction = guarded(async ({ sessionID }) => {
    if (await isMain(sessionID)) await report("PostCompact", sessionID)
  })

  const handlers = {
    "session.created": ({ info }) => void parents.set(info.id, info.parentID ?? null),
    // opencode (1.18.18) goes on with the next request while it reports the compaction.
    "session.compacted": (properties) => (compaction = reportCompaction(properties)),
    "session.idle": async ({ sessionID }) => {
      if (started.has(sessionID)) await report("Stop", sessionID)
    },
  }

  return {
    event: guarded(({ event }) => handlers[event.type]?.(event.properties)),

    "shell.env": guarded(async ({ sessionID }, { env }) => {
      if (sessionID && (await isMain(sessionID))) env[`${VARIABLES}_SESSION_ID`] = sessionID
    }),

    "experimental.session.compacting": guarded(async ({ sessionID }) => {
      compacting.add(sessionID)
      if (await isMain(sessionID)) await report("PreCompact", sessionID)
    }),

    "experimental.chat.messages.transform": guarded(async (_, { messages }) => {
      const last = messages.at(-1)
      const session = last.info.sessionID
      if (compacting.delete(session) || !(await isMain(session))) return
      const addText = textAdder(last)
      const model = await describeModel(last.info.model ?? last.info)
      if (!started.has(session)) await report("SessionStart", session, model)
      started.add(session)
      if (!addText) return
      await compaction
      const name = last.info.role === "user" ? "UserPromptSubmit" : "PostToolUse"
      const added = { added_bytes: bytesOf(addedTexts(last)) }
      const text = await report(name, session, { ...model, ...added })
      if (text) await storePart(addText(text))
    }),

    dispose: guarded(() => Promise.all([...started].map((id) => report("SessionEnd", id)))),
  }
}
