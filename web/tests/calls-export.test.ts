import { expect, test } from "vitest";
import { callsCsv } from "../src/calls-export";
import { call, NOW } from "./views";

test("calls are exported with all their figures", () => {
  const [names, row, end] = callsCsv([call("c1", { at: NOW, model: "m" })]).split("\r\n");
  expect(names).toBe(
    "call,thread,cycle,at,model,sent,input,cache_read,cache_write,cache_write_1h,output",
  );
  expect(row).toBe("c1,main,0,2027-01-15T08:00:00.000Z,m,111,1,10,100,0,1000");
  expect(end).toBe("");
});

test("unknown values are empty, and texts are quoted and never formulas", () => {
  const [, row] = callsCsv([call('=a,"b"', { at: null, model: null })]).split("\r\n");
  expect(row).toBe(`"'=a,""b""",main,0,,,111,1,10,100,0,1000`);
});
