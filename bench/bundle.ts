import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBundler } from '../src/bundle/openBundler.ts'
import { readSettings } from '../src/bundle/settings.ts'
import { deployBundle } from '../src/cli/deployBundle.ts'
import { createClient } from '../src/client/index.ts'
import type { Figure } from './figure.ts'
import { percentile } from './load.ts'
import { BenchServer } from './server.ts'

const MODULES = 15
const SHARED = 5
const EDITS = 30
/** A dependency of 600 KB in 100 modules, as a library for dates or validation. */
const DEPENDENCY = { modules: 100, functions: 60 }

const moduleOf = (n: number): string =>
  `import { fn, send } from 'svc'
import { part${n} } from 'library'
import { tax } from '../_shared/s${n % SHARED}.ts'

enum Kind { Small = 'small', Big = 'big' }

export const on = fn({ 'on-event': 'e${n}' }, async (event: { data: unknown }) => {
  await send('done', { kind: Kind.Big, tax: tax(part${n}(${n})) })
  return event.data
})
${Array.from({ length: 30 }, (_, k) => `export const g${k} = (order: { total: number }): number => {\n  if (order.total > ${k}) throw new Error('too much')\n  return order.total * ${k}\n}`).join('\n')}
`

const libraryModule = (n: number): string =>
  [
    `export const part${n} = (x) => ${Array.from({ length: DEPENDENCY.functions }, (_, k) => `step${n}_${k}(x)`).join(' + ')}`,
    ...Array.from(
      { length: DEPENDENCY.functions },
      (_, k) =>
        `const step${n}_${k} = (value) => { if (value > ${k}) return value - ${k}; return value * ${k} }`,
    ),
  ].join('\n')

/** A project of 20 modules, with a dependency. */
const writeProject = (folder: string): void => {
  const library = join(folder, 'node_modules/library')
  for (const dir of ['src/_shared', 'src/orders']) mkdirSync(join(folder, dir), { recursive: true })
  mkdirSync(library, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"name":"bench","type":"module"}')
  writeFileSync(join(library, 'package.json'), '{"name":"library","type":"module","main":"index.js"}')
  const parts = Array.from({ length: DEPENDENCY.modules }, (_, n) => n)
  writeFileSync(join(library, 'index.js'), parts.map((n) => `export * from './p${n}.js'`).join('\n'))
  for (const n of parts) writeFileSync(join(library, `p${n}.js`), libraryModule(n))
  for (let n = 0; n < SHARED; n++)
    writeFileSync(
      join(folder, `src/_shared/s${n}.ts`),
      `export const tax = (x: number): number => x * ${n}\n`,
    )
  for (let n = 0; n < MODULES; n++) writeFileSync(join(folder, `src/orders/m${n}.ts`), moduleOf(n))
}

/** The times of making the build of 20 modules, and of deploying it, after an edit of one of them. */
export const bundle = async (): Promise<Figure[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  const server = await BenchServer.start()
  try {
    writeProject(folder)
    const client = createClient({ url: server.url, token: server.key })
    const opened = performance.now()
    const bundler = await openBundler(readSettings(folder))
    try {
      const { zip, inputs } = await bundler.rebuild()
      const first = performance.now() - opened
      const [rebuilds, deployments]: [number[], number[]] = [[], []]
      for (let edit = 0; edit < EDITS; edit++) {
        appendFileSync(join(folder, 'src/orders/m3.ts'), `export const edit${edit} = () => ${edit}\n`)
        const began = performance.now()
        const changed = await bundler.rebuild()
        const bundled = performance.now()
        await deployBundle(client, { project: 'bench', bundle: changed })
        rebuilds.push(bundled - began)
        deployments.push(performance.now() - bundled)
      }
      for (const times of [rebuilds, deployments]) times.sort((a, b) => a - b)
      const modules = inputs.length
      return [
        { what: `bundle of 20 modules, ${modules} with dependencies, first`, value: first, unit: 'ms' },
        { what: '  after an edit p50', value: percentile(rebuilds, 0.5), unit: 'ms', atMost: 50 },
        { what: '  p90', value: percentile(rebuilds, 0.9), unit: 'ms' },
        { what: '  zip', value: zip.length / 1024, unit: 'KiB' },
        {
          what: 'deployment of the bundle p50',
          value: percentile(deployments, 0.5),
          unit: 'ms',
          atMost: 150,
        },
        { what: '  p90', value: percentile(deployments, 0.9), unit: 'ms' },
      ]
    } finally {
      await bundler.close()
    }
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
