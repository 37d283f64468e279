/** Buttons of a session's page: draft a handoff, copy its command and its id. */

import { useSignal } from "@preact/signals";
import { RequestFailed } from "../api";
import { isFleet } from "../app";
import type { SessionPart } from "../state/session-detail";

export function SessionActions({ view, detail }: SessionPart) {
  const done = useSignal("");
  const { id } = view.session;
  // A fleet's server does not know the folder of the project.
  const resume = isFleet.value ? null : view.resume_command;
  const copy = async (text: string) => {
    done.value = (await copyText(text)) ? `Copied: ${text}` : `Cannot copy. Select it: ${text}`;
  };
  const draft = async () => {
    done.value = "Drafting ...";
    try {
      const { path } = await detail.draftHandoff();
      done.value = `Drafted from ${path}`;
      document.getElementById("handoff")?.scrollIntoView({ block: "center" });
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error;
      done.value = `Not drafted: ${error.message}`;
    }
  };
  return (
    <div class="actions" data-testid="actions">
      {!isFleet.value && detail.explanation.value?.problem == null && (
        <button type="button" onClick={() => void draft()}>
          Draft a handoff
        </button>
      )}
      {resume !== null && (
        <button type="button" onClick={() => void copy(resume)}>
          Copy resume command
        </button>
      )}
      <button type="button" onClick={() => void copy(id)}>
        Copy id
      </button>
      <output>{done.value}</output>
    </div>
  );
}

/** Whether a text could be copied; browsers refuse outside of https and this machine. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
