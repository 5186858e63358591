import * as assert from 'uvu/assert'
import { call, deploy } from '../support/build.ts'
import { bundleOf, writeProject } from '../support/project.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const folder = writeProject({
  'package.json': JSON.stringify({ name: 'shop', type: 'module', svc: { assets: ['templates/**'] } }),
  'tsconfig.json': JSON.stringify({
    compilerOptions: {
      paths: { '@lib/*': ['./lib/*'] },
      experimentalDecorators: false,
      jsx: 'react',
      jsxFactory: 'h',
    },
  }),
  'lib/tax.ts': `export const taxOf = (net: number): number => net * 0.25`,
  'node_modules/left/package.json': JSON.stringify({ name: 'left', main: 'main.js' }),
  'node_modules/left/main.js': `
    const { basename } = require('path')
    exports.pad = (text, width) => basename(__filename).length > 0 && text.padStart(width)
    exports.fail = () => { throw new Error('left failed') }`,
  'src/orders/pipeline.ts': `
import { fn } from 'svc'
import { pad } from 'left'
import { taxOf } from '@lib/tax.ts'
import rates from './rates.json' with { type: 'json' }
import { failing, template } from '../_shared/mail.ts'

enum Kind { Small = 'small', Big = 'big' }

const twice = (value: (n: number) => number, _context: ClassMethodDecoratorContext) =>
  function (this: unknown, n: number) { return value.call(this, n) * 2 }

class Prices {
  constructor(private readonly factor: number) {}
  @twice of(n: number): number { return n * this.factor }
}

export const onCreated = fn({ 'on-event': 'order:created', retry: 2 }, async () => 'handled')
export const everything = () => [Kind.Big, new Prices(3).of(2), taxOf(8), pad('x', 3), rates.EUR, template()]
export const fails = () => {
  const order = { id: 7 }
  return failing(order.id)
}
`,
  'src/orders/rates.json': '{"EUR":1}',
  'src/_shared/mail.ts': `
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

export const template = (): string => readFileSync(new URL('../templates/hello.html', import.meta.url), 'utf8') + basename(import.meta.dirname)

export class PaymentError extends Error {}

export const failing = (id: number): never => {
  throw new PaymentError(\`declined \${id}\`); void import.meta.filename
}
`,
  'src/page.tsx': `
import { fail } from 'left'
import { template } from './_shared/mail.ts'
const h = (tag: string, _props: unknown, ...children: readonly string[]) => \`<\${tag}>\${children.join('')}</\${tag}>\`
export const render = () => <p>{template()}</p>
export const inDependency = () => fail()
`,
  'src/legacy.cjs': `
const { pad } = require('left')
exports.padded = (text) => pad(text, 4)
module.exports.fails = () => { throw new Error('legacy failed') }
`,
  'src/templates/hello.html': '<b>hello</b>',
})

const server = await startServer()
const { api } = server
const { zip, sha256 } = await bundleOf(folder)
const build = await deploy(api, 'shop', { bytes: Buffer.from(zip), hash: sha256 })

const deployed = suite('a deployed bundle')
deployed.after(() => server.stop())

const resultOf = async (fn: string, ...args: readonly unknown[]) => {
  const { result, error } = await call(api, fn, ...args)
  if (error) throw new Error(JSON.stringify(error))
  return result
}

deployed('has the functions of the sources, under the paths of their modules', () => {
  const { added } = build.changes
  assert.equal(
    added.map((ref) => (typeof ref === 'string' ? ref : JSON.stringify(ref))),
    [
      'legacy/fails',
      'legacy/padded',
      'orders.pipeline/everything',
      'orders.pipeline/fails',
      'orders.pipeline/onCreated',
      'page/inDependency',
      'page/render',
    ],
  )
})

deployed('runs enums, decorators, paths, dependencies, JSON and assets', async () => {
  assert.equal(await resultOf('orders.pipeline/everything'), ['big', 12, 2, '  x', 1, '<b>hello</b>_shared'])
  assert.is(await resultOf('page/render'), '<p><b>hello</b>_shared</p>')
  assert.is(await resultOf('legacy/padded', 'a'), '   a')
})

deployed('names the line of the source in errors, also in shared code and in dependencies', async () => {
  const { error } = await call(api, 'orders.pipeline/fails')
  assert.equal(error?.['location'], {
    file: 'src/_shared/mail.ts',
    line: 10,
    column: 9,
    snippet: '  throw new PaymentError(`declined ${id}`); void import.meta.filename',
  })
  assert.match(String(error?.['stack']), /src\/orders\/pipeline\.ts:22:10/)
  assert.is(error?.['name'], 'PaymentError')
  assert.is(await failedIn('legacy/fails'), 'src/legacy.cjs')
  assert.is(await failedIn('page/inDependency'), 'src/page.tsx')
})

/** The file of the place where the function fails. */
const failedIn = async (fn: string): Promise<unknown> => {
  const { error } = await call(api, fn)
  return (error?.['location'] as { readonly file: string } | undefined)?.file
}

deployed.run()
