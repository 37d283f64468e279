/** A button that saves the calls of a session as a file. */

import type { CallRow } from "../api-types";

interface Props {
  format: "CSV" | "JSON";
  id: string;
  calls: CallRow[];
  text: (calls: CallRow[]) => string;
}

export function ExportButton({ format, id, calls, text }: Props) {
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text(calls)]));
    link.download = `${id.replaceAll(/[^\w.-]+/g, "-")}-calls.${format.toLowerCase()}`;
    link.click();
    // Firefox reads the address only after the click.
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };
  return (
    <button type="button" onClick={save}>
      Export {format}
    </button>
  );
}
