() => {
  // Pairs of words that lie on one another, as they are seen: what an ancestor cuts off is not.
  const SLACK = 2;
  const cut = (box, by) => ({
    left: Math.max(box.left, by.left),
    top: Math.max(box.top, by.top),
    right: Math.min(box.right, by.right),
    bottom: Math.min(box.bottom, by.bottom),
  });
  const seen = (element, box) => {
    let shown = box;
    for (let up = element; up; up = up.parentElement) {
      const { overflowX, clipPath, visibility } = getComputedStyle(up);
      if (clipPath !== "none" || visibility === "hidden") return null;
      if (overflowX !== "visible") shown = cut(shown, up.getBoundingClientRect());
    }
    return shown.right - shown.left > SLACK && shown.bottom - shown.top > SLACK ? shown : null;
  };
  const words = [];
  const walker = document.createTreeWalker(document.querySelector("#page"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const within = node.parentElement;
    if (!node.data.trim() || !within.checkVisibility()) continue;
    if (within.closest(".top, option, .skip")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const box = seen(within, rect);
      if (box) words.push({ node, box, text: node.data.trim().slice(0, 40) });
    }
  }
  const found = [];
  words.forEach((one, at) => {
    for (const other of words.slice(at + 1)) {
      const { left, right, top, bottom } = cut(one.box, other.box);
      const lies = right - left > SLACK && bottom - top > SLACK;
      if (lies && one.node !== other.node) found.push([one.text, other.text]);
    }
  });
  return found;
};
