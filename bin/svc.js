#!/usr/bin/env node
// Runs the command line with the Node of this package, because an older Node cannot load TypeScript.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { fileURLToPath, pathToFileURL } from 'node:url'

const NODE_MAJOR = 26
const found = (...paths) =>
  paths.map((path) => fileURLToPath(new URL(path, import.meta.url))).find((path) => existsSync(path))
// The sources of the checkout, or the JavaScript of the installed package.
const entry = found('../src/cli/main.ts', '../dist/cli/main.js')
// npm installs Node beside the packages of the checkout, or beside this package.
const own = found('../node_modules/.bin/node', '../../.bin/node')

if (Number.parseInt(process.versions.node, 10) >= NODE_MAJOR) await import(pathToFileURL(entry).href)
else if (own) {
  // The channel closes when this process ends, however that happens; svc dev then stops its service.
  const stdio = ['inherit', 'inherit', 'inherit', ...(process.argv[2] === 'dev' ? ['ipc'] : [])]
  const child = spawn(own, [entry, ...process.argv.slice(2)], { stdio })
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  // A terminal sends Ctrl-C to both processes itself.
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'))
  child.on('exit', (code, signal) => (process.exitCode = code ?? 128 + constants.signals[signal]))
} else {
  process.stderr.write(
    `svc: expected Node ${NODE_MAJOR} or later, got ${process.versions.node}; install svc without --omit=optional\n`,
  )
  process.exitCode = 1
}
