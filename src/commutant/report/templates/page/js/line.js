// The picture of one 64-byte cache line: what its bytes are called, and below a row per core, filled where the core wrote,
// hatched where it only read. The accesses that show the conflict are outlined, and labelled with what they do.

import { svg } from "./dom.js";

const LINE_BYTES = 64;
const BYTE_WIDTH = 10;
const ROW_HEIGHT = 18;
const LEFT = 46;
const TOP = 16;
const GAP = 6;
const CHARACTER_WIDTH = 5.6;

export function linePicture(finding) {
  const touched = finding.touched.length ? finding.touched : finding.accesses.map(touchedByOne);
  const top = TOP + (finding.fields.length ? ROW_HEIGHT + GAP : 0);
  const height = top + touched.length * (ROW_HEIGHT + GAP) + 2;
  return svg(
    "svg",
    { class: "line", viewBox: `0 0 ${LEFT + LINE_BYTES * BYTE_WIDTH + 6} ${height}`, role: "img", "aria-label": describeLine(finding) },
    svg(
      "defs",
      null,
      svg(
        "pattern",
        { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        svg("line", { x1: 0, y1: 0, x2: 0, y2: 5, class: "hatch-line" }),
      ),
    ),
    scale(),
    finding.fields.map((field) => fieldBox(field, finding.accesses)),
    overlap(finding.accesses, top, height),
    touched.map((one, row) => coreRow(one, finding.accesses, top + row * (ROW_HEIGHT + GAP))),
  );
}

// What a core touched as far as its one access shows it.
function touchedByOne({ core, isWrite, offset, size }) {
  const range = [[offset, Math.min(size, LINE_BYTES - offset)]];
  return { core, read: isWrite ? [] : range, written: isWrite ? range : [] };
}

function describeLine(finding) {
  const sizeText = (size) => (size === 1 ? "1 byte" : `${size} bytes`);
  const fields = finding.fields.map(({ offset, size, name }) => `${name} at ${offset}, ${sizeText(size)}`);
  return [
    `The 64-byte line: ${finding.accesses.map((access) => access.sentence).join("; ")}`,
    fields.length ? `fields: ${fields.join("; ")}` : "",
  ].filter(Boolean).join(". ");
}

function scale() {
  const marks = [];
  for (let byte = 0; byte < LINE_BYTES; byte += 8) {
    marks.push(svg("text", { x: LEFT + byte * BYTE_WIDTH, y: TOP - 5 }, String(byte)));
  }
  return marks;
}

function fieldBox({ offset, size, name }, accesses) {
  const isTouched = accesses.some((access) => access.offset < offset + size && offset < access.offset + access.size);
  const room = Math.floor((size * BYTE_WIDTH - 4) / CHARACTER_WIDTH);
  const short = fitting(name.length <= room ? name : name.split(".").at(-1), room);
  return svg(
    "g",
    { class: isTouched ? "field touched" : "field" },
    svg("title", null, `${name}: bytes ${offset} to ${offset + size - 1}`),
    svg("rect", { x: LEFT + offset * BYTE_WIDTH + 0.5, y: TOP + 0.5, width: size * BYTE_WIDTH - 1, height: ROW_HEIGHT - 1 }),
    short ? svg("text", { x: LEFT + offset * BYTE_WIDTH + 3, y: TOP + 13 }, short) : null,
  );
}

function overlap([one, other], top, height) {
  const start = Math.max(one.offset, other.offset);
  const end = Math.min(one.offset + one.size, other.offset + other.size, LINE_BYTES);
  if (end <= start) return null;
  return svg("rect", {
    class: "overlap", x: LEFT + start * BYTE_WIDTH - 3, y: top - 3, width: (end - start) * BYTE_WIDTH + 6, height: height - top + 2,
  });
}

function coreRow({ core, read, written }, accesses, y) {
  const has = (ranges, byte) => ranges.some(([offset, size]) => offset <= byte && byte < offset + size);
  const bytes = [];
  for (let byte = 0; byte < LINE_BYTES; byte++) {
    const look = has(written, byte) ? "write" : has(read, byte) ? "read" : "byte";
    bytes.push(svg("rect", {
      class: look, x: LEFT + byte * BYTE_WIDTH + 0.5, y: y + 0.5, width: BYTE_WIDTH - 1, height: ROW_HEIGHT - 1,
    }));
  }
  const access = accesses.find((one) => one.core === core);
  return svg(
    "g",
    { class: `core-${core % 2}` },
    svg("text", { x: 0, y: y + 13, class: "touch-label" }, `core ${core}`),
    bytes,
    access ? witness(access, [...read, ...written], y) : null,
  );
}

// The access that shows the conflict: an outline, and what it does, where the row has most room for words.
function witness(access, touched, y) {
  const end = Math.min(access.offset + access.size, LINE_BYTES);
  const words = [access.isWrite ? "writes" : "reads", access.field].filter(Boolean).join(" ");
  const { start, size } = widestGap(touched);
  const room = Math.floor((size * BYTE_WIDTH - 8) / (CHARACTER_WIDTH + 0.6));
  const short = fitting(words, room);
  return [
    svg("rect", {
      class: "witness", x: LEFT + access.offset * BYTE_WIDTH - 0.5, y: y - 0.5,
      width: (end - access.offset) * BYTE_WIDTH + 1, height: ROW_HEIGHT + 1,
    }, svg("title", null, access.sentence)),
    short ? svg("text", { x: LEFT + start * BYTE_WIDTH + 5, y: y + 13, class: "touch-label" }, short) : null,
  ];
}

// As much of a text as there is room for, in characters; nothing rather than a letter or two.
function fitting(text, room) {
  if (text.length <= room) return text;
  return room > 2 ? `${text.slice(0, room - 1)}…` : "";
}

function widestGap(ranges) {
  const ends = [...ranges].sort(([one], [other]) => one - other);
  let [start, best] = [0, { start: 0, size: 0 }];
  for (const [offset, size] of [...ends, [LINE_BYTES, 0]]) {
    if (offset - start > best.size) best = { start, size: offset - start };
    start = Math.max(start, offset + size);
  }
  return best;
}
