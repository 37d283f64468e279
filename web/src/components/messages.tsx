/** The messages of a session, and a form to send one. */

import { useSignal } from "@preact/signals";
import * as api from "../api";
import type { Message, SessionView, Timeline } from "../api-types";
import { isReachable, unreachableReason } from "../app";
import { levelText, moment } from "../format";
import { now } from "../state/clock";
import { Checkbox } from "./inputs";
import { Panel } from "./panel";

interface Props {
  view: SessionView;
  timeline: Timeline | null;
  changed: () => void;
}

export function Messages({ view, timeline, changed }: Props) {
  const reason = unreachableReason(view);
  const messages = [...(timeline?.messages ?? [])].sort((a, b) => b.at - a.at);
  return (
    <Panel id="messages" title="Messages">
      {isReachable(view) && <SendForm id={view.session.id} changed={changed} />}
      {reason !== null && <p class="quiet">No message can be sent: {reason}.</p>}
      <ul class="messages" data-testid="messages">
        {messages.map((message) => (
          <MessageItem key={message.id} message={message} changed={changed} />
        ))}
      </ul>
    </Panel>
  );
}

function SendForm({ id, changed }: { id: string; changed: () => void }) {
  const text = useSignal("");
  const urgent = useSignal(false);
  const result = useSignal("");
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!text.value.trim()) return;
    result.value = await attempt(async () => {
      const problem = await api.send(id, text.value, urgent.value);
      text.value = "";
      return problem === null ? "Queued." : `Queued, but nothing will deliver it. ${problem}`;
    });
    changed();
  };
  return (
    <form class="send" onSubmit={(event) => void submit(event)} data-testid="send">
      <label for="message-text">Send a message to this agent</label>
      <textarea
        id="message-text"
        rows={2}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
      />
      <div class="send-line">
        <Checkbox
          label="urgent"
          title="delivered after the next tool call instead of at the start of a turn"
          on={urgent.value}
          set={(on) => {
            urgent.value = on;
          }}
        />
        <output aria-live="polite">{result.value}</output>
        <button type="submit" disabled={!text.value.trim()}>
          Send
        </button>
      </div>
    </form>
  );
}

function MessageItem({ message, changed }: { message: Message; changed: () => void }) {
  const error = useSignal("");
  const cancel = async () => {
    error.value = await attempt(async () => {
      await api.cancel(message.session, message.id);
      return "";
    });
    changed();
  };
  const about =
    message.level === null
      ? message.sender
      : `${message.sender}, level ${levelText(message.level)}`;
  return (
    <li data-message={message.id} data-state={message.state}>
      <p class="message-head">
        <b>{about}</b> <span class="when">{moment(message.at, now.peek())}</span>{" "}
        <span class="badge" data-message-state={message.state}>
          {message.state}
        </span>
        {message.urgency === "urgent" && <span class="badge">urgent</span>}
        {message.state === "queued" && (
          <button type="button" onClick={() => void cancel()}>
            Cancel
          </button>
        )}
      </p>
      <p class="message-text">{message.text}</p>
      {error.value && <p role="alert">{error.value}</p>}
    </li>
  );
}

/** Run an action; returns its result, or why it failed. */
async function attempt(act: () => Promise<string>): Promise<string> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof api.RequestFailed)
      return [error.message, error.hint].filter(Boolean).join(" ");
    throw error;
  }
}
