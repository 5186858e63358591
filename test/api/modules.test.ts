import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { withBlobs } from '../support/blobs.ts'
import { type Files, upload } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { isRefused } from './refusal.ts'

const server = await startServer()
const { api } = server
await api.post('/projects', { name: 'up' })

const loading = suite('loading the modules of an upload', { timeoutMs: 30_000 })

/** The service refuses it after 20 s; the other tests run meanwhile. */
const spinning = upload(api, 'up', { 'ok.js': '', 'spins.js': `for (;;) {}` })

const modules: [name: string, files: Files, message: RegExp][] = [
  [
    'a module that throws',
    { 'a/b.ts': `// one\nconst n: number = 1\nthrow new Error('no ' + n)` },
    /a\/b\.ts:3.*no 1/,
  ],
  ['a syntax error', { 'ok.js': '', 'bad.js': `export const a = 1\nexport const = 2` }, /bad\.js:2/],
  [
    'a syntax error in TypeScript',
    { 'bad.ts': `export const a: number = 1\n\nexport const b: = 2` },
    /bad\.ts:3/,
  ],
  ['an import that does not exist', { 'needs.js': `\nimport 'left-pad'` }, /needs\.js.*left-pad/],
  ['a module that exits', { 'quits.js': `process.exit(0)` }, /quits\.js.*exit/],
  [
    'a rejection while it loads',
    { 'late.js': `await Promise.reject(new Error('nope'))` },
    /late\.js:1.*nope/,
  ],
  [
    'metadata that is wrong',
    { 'meta.js': `import { fn } from 'svc'\nexport const a = fn({ retry: 11 }, () => 1)` },
    /meta\.js: a: .*retry.*11/,
  ],
  [
    'an invalid cron expression',
    { 'meta.js': `import { fn } from 'svc'\nexport const a = fn({ schedule: 'daily' }, () => 1)` },
    /meta\.js: a: .*cron.*"daily"/,
  ],
  ['two modules of one name', { 'same.js': '', 'same.ts': '' }, /same/],
  ['TypeScript that cannot be stripped', { 'kinds.ts': `export enum Kind { A }` }, /kinds\.ts:1/],
]
for (const [name, files, message] of modules) {
  loading(`reports ${name}`, async () => isRefused(await upload(api, 'up', files), message))
}

loading('refuses a module that spins', async () => isRefused(await spinning, /spins\.js/))

loading('stores nothing of a refused build', async () => {
  const zip = await zipBuild({ 'bad.js': 'throw new Error("unique")' })
  isRefused(await upload(api, 'up', zip), 'unique')
  assert.equal(readdirSync(join(server.dataDir, 'uploads')), [])
  const held = await withBlobs(server.dataDir, (blobs) => Array.fromAsync(blobs.list('')))
  assert.equal(
    held.filter(({ key }) => key.includes(zip.hash)),
    [],
  )
})

loading.after(() => server.stop())
loading.run()
