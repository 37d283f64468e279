/** The pieces in a context as tiles; a tile opens the call that brought its piece in. */

import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { type Slice, shortName } from "../explanation/slices";
import { type Tile, tilesOf } from "../explanation/treemap";
import { count, plural, tokens } from "../format";
import { useWidth } from "./box-size";

const HEIGHT = 340;

interface Props {
  slices: Slice[];
  open: (call: string) => void;
}

export function Treemap({ slices, open }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const tiles = useMemo(() => tilesOf(slices, width.value, HEIGHT), [slices, width.value]);
  const current = useSignal(0);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    current.value = Math.min(tiles.length - 1, Math.max(0, current.value + step));
    box.current?.querySelectorAll("button")[current.value]?.focus();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a group of buttons that the arrow keys walk
    <div
      class="treemap"
      ref={box}
      role="group"
      aria-label="Largest pieces; arrow keys move between them"
      onKeyDown={move}
      data-testid="treemap"
    >
      {width.value > 0 &&
        tiles.map((tile, at) => (
          <TileButton
            key={`${tile.slice.name}\n${at}`}
            tile={tile}
            open={open}
            isCurrent={at === Math.min(current.value, tiles.length - 1)}
          />
        ))}
    </div>
  );
}

interface TileProps {
  tile: Tile;
  open: (call: string) => void;
  isCurrent: boolean;
}

function TileButton({ tile, open, isCurrent }: TileProps) {
  const { box, slice } = tile;
  const call = tile.pieces[0]?.call;
  const name = nameOf(tile);
  const shown = { name: shortName(name), size: tokens(tile.tokens) };
  const hasText = box.width >= 44 && box.height >= 20;
  return (
    <button
      type="button"
      class="tile"
      data-fill={slice.colour}
      data-call={call}
      style={{
        left: `${box.x}px`,
        top: `${box.y}px`,
        width: `${Math.max(0, box.width - 1)}px`,
        height: `${Math.max(0, box.height - 1)}px`,
      }}
      title={`${name}, ${slice.name}, ${count(tile.tokens)} tokens`}
      aria-label={`${shown.name} ${shown.size} tokens, ${slice.name}`}
      tabIndex={isCurrent ? 0 : -1}
      onClick={() => call !== undefined && open(call)}
    >
      {hasText && <span class="tile-name">{shown.name} </span>}
      {hasText && box.height >= 40 && <span class="tile-tokens">{shown.size}</span>}
    </button>
  );
}

function nameOf({ slice, pieces }: Tile): string {
  if (pieces.length === 0) return slice.name;
  if (pieces.length === 1) return pieces[0]?.what || slice.name;
  return pieces.length === slice.pieces.length
    ? `${slice.name}: ${plural(pieces.length, "piece")}`
    : plural(pieces.length, "other");
}
