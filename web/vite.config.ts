import { defineConfig } from "vite";
import { fakeDaemon } from "./dev/fake.ts";

/** With BRIMLINE_DAEMON=http://127.0.0.1:8420 the page stands on a real daemon, else on a made-up one. */
const daemon = process.env.BRIMLINE_DAEMON;
const proxy = daemon
  ? { "/v1": { target: daemon, changeOrigin: true, headers: { origin: daemon } } }
  : {};

export default defineConfig({
  base: "./",
  plugins: daemon ? [] : [fakeDaemon()],
  server: { port: 8421, host: "127.0.0.1", proxy },
  preview: { port: 8422, host: "127.0.0.1", proxy },
  build: {
    outDir: "../src/brimline/api/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
});
