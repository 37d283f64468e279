/** A handoff document, rendered from a parsed tree: nothing in it is treated as HTML. */

import { type Block, blocks, type Inline } from "../markdown";

export function MarkdownText({ text }: { text: string }) {
  return (
    <div class="prose" data-testid="handoff-text">
      {blocks(text).map((block, at) => (
        <BlockElement key={at} block={block} />
      ))}
    </div>
  );
}

function BlockElement({ block }: { block: Block }) {
  switch (block.kind) {
    case "heading":
      return (
        <p class={`heading heading-${Math.min(block.depth, 3)}`}>
          <Spans of={block.inline} />
        </p>
      );
    case "list":
      return <List items={block.items} ordered={block.ordered} />;
    case "code":
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
      return <pre tabIndex={0}>{block.text}</pre>;
    case "rule":
      return <hr />;
    case "quote":
      return (
        <blockquote>
          <Spans of={block.inline} />
        </blockquote>
      );
    default:
      return (
        <p>
          <Spans of={block.inline} />
        </p>
      );
  }
}

function List({ items, ordered }: { items: Inline[][]; ordered: boolean }) {
  const Tag = ordered ? "ol" : "ul";
  return (
    <Tag>
      {items.map((item, at) => (
        <li key={at}>
          <Spans of={item} />
        </li>
      ))}
    </Tag>
  );
}

const TAGS = { code: "code", strong: "strong", em: "em" } as const;

function Spans({ of }: { of: Inline[] }) {
  return (
    <>
      {of.map((span, at) => {
        if (span.kind === "text") return span.text;
        const Tag = TAGS[span.kind];
        return <Tag key={at}>{span.text}</Tag>;
      })}
    </>
  );
}
