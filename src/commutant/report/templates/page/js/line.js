// The picture of one 64-byte cache line, or of a pair of them: what its bytes are called, and below a row per core, filled
// where the core wrote, hatched where it only read. The accesses that show the conflict are outlined, and labelled with what
// they do.

import { svg } from "./dom.js";

const LINE_BYTES = 64;
const NEIGHBOURS = 2; // place among the kinds of sharing
const PICTURE_WIDTH = 640;
const ROW_HEIGHT = 18;
const LEFT = 46;
const TOP = 16;
const GAP = 6;
const CHARACTER_WIDTH = 5.6;

// How many bytes a picture shows, and how wide each is.
function measureOf({ sharing }) {
  const bytes = sharing === NEIGHBOURS ? 2 * LINE_BYTES : LINE_BYTES;
  return { bytes, byteWidth: PICTURE_WIDTH / bytes };
}

export function linePicture(finding) {
  const measure = measureOf(finding);
  const touched = finding.touched.length ? finding.touched : finding.accesses.map((access) => touchedByOne(access, measure));
  const top = TOP + (finding.fields.length ? ROW_HEIGHT + GAP : 0);
  const height = top + touched.length * (ROW_HEIGHT + GAP) + 2;
  return svg(
    "svg",
    { class: "line", viewBox: `0 0 ${LEFT + PICTURE_WIDTH + 6} ${height}`, role: "img", "aria-label": describeLine(finding) },
    svg(
      "defs",
      null,
      svg(
        "pattern",
        { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        svg("line", { x1: 0, y1: 0, x2: 0, y2: 5, class: "hatch-line" }),
      ),
    ),
    scale(measure),
    finding.fields.map((field) => fieldBox(field, finding.accesses, measure)),
    overlap(finding.accesses, top, height, measure),
    touched.map((one, row) => coreRow(one, finding.accesses, top + row * (ROW_HEIGHT + GAP), measure)),
  );
}

// What a core touched as far as its one access shows it.
function touchedByOne({ core, isWrite, offset, size }, { bytes }) {
  const range = [[offset, Math.min(size, bytes - offset)]];
  return { core, read: isWrite ? [] : range, written: isWrite ? range : [] };
}

function describeLine(finding) {
  const sizeText = (size) => (size === 1 ? "1 byte" : `${size} bytes`);
  const fields = finding.fields.map(({ offset, size, name }) => `${name} at ${offset}, ${sizeText(size)}`);
  return [
    `The ${finding.sharing === NEIGHBOURS ? "pair of 64-byte lines" : "64-byte line"}: ${finding.accesses.map((access) => access.sentence).join("; ")}`,
    fields.length ? `fields: ${fields.join("; ")}` : "",
  ].filter(Boolean).join(". ");
}

function scale({ bytes, byteWidth }) {
  const marks = [];
  for (let byte = 0; byte < bytes; byte += bytes / 8) {
    marks.push(svg("text", { x: LEFT + byte * byteWidth, y: TOP - 5 }, String(byte)));
  }
  return marks;
}

function fieldBox({ offset, size, name }, accesses, { byteWidth }) {
  const isTouched = accesses.some((access) => access.offset < offset + size && offset < access.offset + access.size);
  const room = Math.floor((size * byteWidth - 4) / CHARACTER_WIDTH);
  const short = fitting(name.length <= room ? name : name.split(".").at(-1), room);
  return svg(
    "g",
    { class: isTouched ? "field touched" : "field" },
    svg("title", null, `${name}: bytes ${offset} to ${offset + size - 1}`),
    svg("rect", { x: LEFT + offset * byteWidth + 0.5, y: TOP + 0.5, width: size * byteWidth - 1, height: ROW_HEIGHT - 1 }),
    short ? svg("text", { x: LEFT + offset * byteWidth + 3, y: TOP + 13 }, short) : null,
  );
}

function overlap([one, other], top, height, { bytes, byteWidth }) {
  const start = Math.max(one.offset, other.offset);
  const end = Math.min(one.offset + one.size, other.offset + other.size, bytes);
  if (end <= start) return null;
  return svg("rect", {
    class: "overlap", x: LEFT + start * byteWidth - 3, y: top - 3, width: (end - start) * byteWidth + 6, height: height - top + 2,
  });
}

function coreRow({ core, read, written }, accesses, y, measure) {
  const has = (ranges, byte) => ranges.some(([offset, size]) => offset <= byte && byte < offset + size);
  const bytes = [];
  for (let byte = 0; byte < measure.bytes; byte++) {
    const look = has(written, byte) ? "write" : has(read, byte) ? "read" : "byte";
    bytes.push(svg("rect", {
      class: look, x: LEFT + byte * measure.byteWidth + 0.5, y: y + 0.5, width: measure.byteWidth - 1, height: ROW_HEIGHT - 1,
    }));
  }
  const access = accesses.find((one) => one.core === core);
  return svg(
    "g",
    { class: `core-${core % 2}` },
    svg("text", { x: 0, y: y + 13, class: "touch-label" }, `core ${core}`),
    bytes,
    access ? witness(access, [...read, ...written], y, measure) : null,
  );
}

// The access that shows the conflict: an outline, and what it does, where the row has most room for words.
function witness(access, touched, y, { bytes, byteWidth }) {
  const end = Math.min(access.offset + access.size, bytes);
  const words = [access.isWrite ? "writes" : "reads", access.field].filter(Boolean).join(" ");
  const { start, size } = widestGap(touched, bytes);
  const room = Math.floor((size * byteWidth - 8) / (CHARACTER_WIDTH + 0.6));
  const short = fitting(words, room);
  return [
    svg("rect", {
      class: "witness", x: LEFT + access.offset * byteWidth - 0.5, y: y - 0.5,
      width: (end - access.offset) * byteWidth + 1, height: ROW_HEIGHT + 1,
    }, svg("title", null, access.sentence)),
    short ? svg("text", { x: LEFT + start * byteWidth + 5, y: y + 13, class: "touch-label" }, short) : null,
  ];
}

// As much of a text as there is room for, in characters; nothing rather than a letter or two.
function fitting(text, room) {
  if (text.length <= room) return text;
  return room > 2 ? `${text.slice(0, room - 1)}…` : "";
}

function widestGap(ranges, bytes) {
  const ends = [...ranges].sort(([one], [other]) => one - other);
  let [start, best] = [0, { start: 0, size: 0 }];
  for (const [offset, size] of [...ends, [bytes, 0]]) {
    if (offset - start > best.size) best = { start, size: offset - start };
    start = Math.max(start, offset + size);
  }
  return best;
}
