// The picture of one 64-byte cache line: a row of bytes per core, filled where it wrote, hatched where it only read.

import { svg } from "./dom.js";

const LINE_BYTES = 64;
const BYTE_WIDTH = 10;
const ROW_HEIGHT = 18;
const LEFT = 46;
const TOP = 16;
const GAP = 6;

export function linePicture(finding) {
  const width = LEFT + LINE_BYTES * BYTE_WIDTH + 6;
  const height = TOP + 2 * ROW_HEIGHT + GAP + 4;
  return svg(
    "svg",
    { class: "line", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describeLine(finding) },
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
    overlap(finding.accesses),
    finding.accesses.map((access, row) => coreRow(access, row)),
  );
}

function describeLine(finding) {
  return `The 64-byte line: ${finding.accesses.map((access) => access.sentence).join("; ")}`;
}

function scale() {
  const marks = [];
  for (let byte = 0; byte < LINE_BYTES; byte += 8) {
    marks.push(svg("text", { x: LEFT + byte * BYTE_WIDTH, y: TOP - 5 }, String(byte)));
  }
  return marks;
}

function overlap([one, other]) {
  const start = Math.max(one.offset, other.offset);
  const end = Math.min(one.offset + one.size, other.offset + other.size, LINE_BYTES);
  if (end <= start) return null;
  return svg("rect", {
    class: "overlap", x: LEFT + start * BYTE_WIDTH - 3, y: TOP - 3,
    width: (end - start) * BYTE_WIDTH + 6, height: 2 * ROW_HEIGHT + GAP + 6,
  });
}

function coreRow(access, row) {
  const y = TOP + row * (ROW_HEIGHT + GAP);
  const touchedEnd = Math.min(access.offset + access.size, LINE_BYTES);
  const label = [access.isWrite ? "writes" : "reads", access.field].filter(Boolean).join(" ");
  const bytes = [];
  for (let byte = 0; byte < LINE_BYTES; byte++) {
    const isTouched = byte >= access.offset && byte < touchedEnd;
    const look = isTouched ? (access.isWrite ? "write" : "read") : "byte";
    bytes.push(svg("rect", {
      class: look, x: LEFT + byte * BYTE_WIDTH + 0.5, y: y + 0.5, width: BYTE_WIDTH - 1, height: ROW_HEIGHT - 1,
    }));
  }
  const fitsRight = touchedEnd <= LINE_BYTES / 2;
  return svg(
    "g",
    { class: `core-${access.core % 2}` },
    svg("text", { x: 0, y: y + 13, class: "touch-label" }, `core ${access.core}`),
    bytes,
    svg(
      "text",
      {
        x: LEFT + (fitsRight ? touchedEnd * BYTE_WIDTH + 6 : access.offset * BYTE_WIDTH - 6), y: y + 13,
        class: "touch-label", "text-anchor": fitsRight ? "start" : "end",
      },
      label.length > 48 ? `${label.slice(0, 47)}…` : label,
    ),
  );
}
