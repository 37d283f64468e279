const OURS = "brimline"

export default function (pi) {
  let running = false // inside the agent's loop
  let goneOn = false // this turn was kept from ending once

  const on = (name, handle) => pi.on(name, quiet(handle))

  const ask = (name, ctx, more) =>
    tell({
      hook_event_name: name,
      session_id: ctx.sessionManager.getSessionId(),
      transcript_path: ctx.sessionManager.getSessionFile(),
      cwd: ctx.cwd,
      model: ctx.model?.id,
      context_window: ctx.model?.contextWindow,
      ...more,
    })

  const message = (text) => ({ customType: OURS, content: text, display: true })

  /** Into the next request, where the agent goes on by itself; else the next prompt finds it. */
  const say = (text, goesOn) => {
    if (!text) return
    pi.sendMessage(message(text), goesOn ? { deliverAs: "steer" } : { triggerTurn: false })
  }

  const trigger = (event) => ({ trigger: event.reason === "manual" ? "manual" : "auto" })

  on("session_start", async (event, ctx) => {
    await ask("SessionStart", ctx, { source: event.reason })
  })

  on("before_agent_start", async (_, ctx) => {
    goneOn = false
    const text = await ask("UserPromptSubmit", ctx)
    return text && { message: message(text) }
  })

  on("agent_start", () => void (running = true))
  on("agent_end", () => void (running = false))

  on("turn_end", async (event, ctx) => {
    if (event.toolResults.length > 0) say(await ask("PostToolUse", ctx), true)
  })

  on("agent_before_settle", async (event, ctx) => {
    if (event.outcome !== "completed") return undefined
    const text = await ask("Stop", ctx, { stop_hook_active: goneOn })
    if (!text) return undefined
    goneOn = true
    const draft = { type: "custom_message", ...message(text) }
    return { entries: [...event.entries, draft], continue: true }
  })

  on("session_before_compact", async (event, ctx) => {
    await ask("PreCompact", ctx, trigger(event))
  })

  on("session_compact", async (event, ctx) => {
    say(await ask("PostCompact", ctx, trigger(event)), running || event.willRetry)
  })

  on("session_shutdown", async (event, ctx) => {
    if (event.reason !== "reload") await ask("SessionEnd", ctx, { reason: event.reason })
  })
}
