// Perfetto's trace processor as its viewer has it, without a browser: node FILE FOLDER < requests > replies
//
// FOLDER has engine_bundle.js and its .wasm. Requests and replies are messages TraceProcessorRpcStream.
"use strict";
const fs = require("node:fs");
const path = require("node:path");

const folder = process.argv[2];
const content = (url) => fs.readFileSync(path.join(folder, path.basename(url)));

// The bundle expects a web worker. What else would tell it that it runs in node is hidden.
const self = { location: { href: "http://localhost/engine_bundle.js" } };
const { error } = console;
const around = {
  self,
  XMLHttpRequest: class {
    open(_method, url) { this.url = url; }
    send() { this.response = content(this.url); }
  },
  WorkerGlobalScope: class {},
  console: { log() {}, warn: error, error },
  process: undefined,
  require: undefined,
  module: undefined,
};
new Function(...Object.keys(around), content("engine_bundle.js").toString())(...Object.values(around));

const port = { postMessage: (reply) => fs.writeSync(1, reply) };
self.onmessage({ data: port });
// The module is ready once what it waits for has been resolved, before the next turn.
setTimeout(() => port.onmessage({ data: new Uint8Array(fs.readFileSync(0)) }), 0);
