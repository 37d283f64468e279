export default function (pi) {
  let running = false // inside the agent's loop
  let continued = false // this turn was kept from ending once

  const on = (name, handle) => pi.on(name, guarded(handle))

  const report = (name, ctx, details) =>
    reportEvent({
      hook_event_name: name,
      session_id: ctx.sessionManager.getSessionId(),
      transcript_path: ctx.sessionManager.getSessionFile(),
      cwd: ctx.cwd,
      model: ctx.model?.id,
      context_window: ctx.model?.contextWindow,
      is_interactive: ctx.mode === "tui",
      ...details,
    })

  const message = (text) => ({ customType: "brimline", content: text, display: true })

  /** Adds a text to the next request: the agent's own if it continues, else that of the user. */
  const send = (text, continues) => {
    if (!text) return
    pi.sendMessage(message(text), continues ? { deliverAs: "steer" } : { triggerTurn: false })
  }

  const trigger = (event) => ({ trigger: event.reason === "manual" ? "manual" : "auto" })

  on("session_start", async (event, ctx) => {
    await report("SessionStart", ctx, { source: event.reason })
  })

  on("before_agent_start", async (event, ctx) => {
    continued = false
    const text = await report("UserPromptSubmit", ctx, { added_bytes: bytesOf([event.prompt]) })
    return text && { message: message(text) }
  })

  on("agent_start", () => void (running = true))
  on("agent_end", () => void (running = false))

  on("turn_end", async (event, ctx) => {
    if (event.toolResults.length === 0) return
    const texts = event.toolResults.flatMap(({ content }) => content.map(({ text }) => text))
    send(await report("PostToolUse", ctx, { added_bytes: bytesOf(texts) }), true)
  })

  on("agent_before_settle", async (event, ctx) => {
    if (event.outcome !== "completed") return undefined
    const text = await report("Stop", ctx, { stop_hook_active: continued })
    if (!text) return undefined
    continued = true
    const draft = { type: "custom_message", ...message(text) }
    return { entries: [...event.entries, draft], continue: true }
  })

  on("session_before_compact", async (event, ctx) => {
    await report("PreCompact", ctx, trigger(event))
  })

  on("session_compact", async (event, ctx) => {
    send(await report("PostCompact", ctx, trigger(event)), running || event.willRetry)
  })

  on("session_shutdown", async (event, ctx) => {
    if (event.reason !== "reload") await report("SessionEnd", ctx, { reason: event.reason })
  })
}
