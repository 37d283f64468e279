/** A section of a page with a headline. */

import type { ComponentChildren } from "preact";

interface Props {
  /** The id of its headline. */
  id: string;
  title: string;
  /** A small text behind the headline: a number, a state. */
  amount?: string | undefined;
  /** Controls at the other end of the headline. */
  tools?: ComponentChildren;
  /** As wide as the page, where others stand in two columns. */
  wide?: boolean;
  testid?: string;
  children: ComponentChildren;
}

export function Panel({ id, title, amount, tools, wide = false, testid, children }: Props) {
  return (
    <section class="panel" data-wide={wide || undefined} aria-labelledby={id} data-testid={testid}>
      <div class="panel-head">
        <Headline id={id} title={title} amount={amount} />
        {tools}
      </div>
      {children}
    </section>
  );
}

interface FoldedProps extends Omit<Props, "tools"> {
  /** Called when it is opened or folded. */
  toggled?: (open: boolean) => void;
  open?: boolean;
}

/** A panel that shows its headline alone until it is opened. */
export function FoldedPanel({
  id,
  title,
  amount,
  wide = false,
  testid,
  open = false,
  toggled,
  children,
}: FoldedProps) {
  return (
    <details
      class="panel folded"
      data-wide={wide || undefined}
      data-testid={testid}
      open={open}
      onToggle={(event) => toggled?.(event.currentTarget.open)}
    >
      <summary>
        <Headline id={id} title={title} amount={amount} />
      </summary>
      {children}
    </details>
  );
}

function Headline({ id, title, amount }: Pick<Props, "id" | "title" | "amount">) {
  return (
    <h2 id={id}>
      {title} {amount !== undefined && <span class="amount">{amount}</span>}
    </h2>
  );
}
