/** Buttons of a session's page: copy its id and command, draft a handoff, export its calls. */

import { useSignal } from "@preact/signals";
import { RequestFailed } from "../api";
import type { CallRow, SessionView } from "../api-types";
import { isFleet } from "../app";
import { callsCsv } from "../calls-export";
import type { SessionDetail } from "../state/session-detail";

interface Props {
  view: SessionView;
  detail: SessionDetail;
}

export function SessionActions({ view, detail }: Props) {
  const done = useSignal("");
  const timeline = detail.timeline.value;
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
      <button type="button" onClick={() => void copy(id)}>
        Copy id
      </button>
      {resume !== null && (
        <button type="button" onClick={() => void copy(resume)}>
          Copy resume command
        </button>
      )}
      {detail.explanation.value?.problem === null && (
        <button type="button" onClick={() => void draft()}>
          Draft a handoff
        </button>
      )}
      <Export format="JSON" id={id} calls={timeline?.calls} text={callsJson} />
      <Export format="CSV" id={id} calls={timeline?.calls} text={callsCsv} />
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

const callsJson = (calls: CallRow[]) => JSON.stringify(calls, null, 2);

interface ExportProps {
  format: "CSV" | "JSON";
  id: string;
  calls: CallRow[] | undefined;
  text: (calls: CallRow[]) => string;
}

function Export({ format, id, calls, text }: ExportProps) {
  const save = () => {
    if (!calls) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text(calls)]));
    link.download = `${id.replaceAll(/[^\w.-]+/g, "-")}-calls.${format.toLowerCase()}`;
    link.click();
    // Firefox reads the address only after the click.
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };
  return (
    <button type="button" disabled={!calls} onClick={save}>
      Export {format}
    </button>
  );
}
