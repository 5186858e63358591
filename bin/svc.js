#!/usr/bin/env node
// Runs the command line with the Node of this package, because an older Node cannot load TypeScript.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

const NODE_MAJOR = 26
const entry = new URL('../src/cli/main.ts', import.meta.url)
const own = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url))

if (Number.parseInt(process.versions.node, 10) >= NODE_MAJOR) await import(entry.href)
else if (existsSync(own)) {
  const child = spawn(own, [fileURLToPath(entry), ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  // A terminal sends Ctrl-C to both processes itself.
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'))
  child.on('exit', (code, signal) => (process.exitCode = code ?? 128 + constants.signals[signal]))
} else {
  process.stderr.write(
    `svc: expected Node ${NODE_MAJOR} or later, got ${process.versions.node}; run npm ci\n`,
  )
  process.exitCode = 1
}
