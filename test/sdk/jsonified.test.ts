import * as assert from 'uvu/assert'
import { currentRun, fn } from '../../src/sdk/index.ts'
import type { Jsonified } from '../../src/sdk/jsonified.ts'
import { testRun } from '../../src/testkit/index.ts'
import { suite } from '../support/suite.ts'

/** `true` if the types are identical, also in what is optional and readonly. */
type Same<A, B> = (<X>() => X extends A ? 1 : 2) extends <X>() => X extends B ? 1 : 2 ? true : false

/** A row of a table of types, which the compiler checks. */
const same = <A, B>(_: Same<A, B>): void => {}

const at = new Date('2026-01-02T03:04:05.000Z')
const iso = '2026-01-02T03:04:05.000Z'

declare const tag: unique symbol
declare enum Direction {
  Up = 'up',
  Down = 'down',
}
type Any = ReturnType<typeof JSON.parse>
type OrderId = string & { readonly [tag]: 'order' }
type Json = string | number | boolean | null | Json[] | { [key: string]: Json }
type Loose = string | Date | undefined | readonly Loose[] | { readonly [key: string]: Loose }
type Expression = number | [operator: string, left: Expression, right: Expression]
type Paid = { at: Date; error?: never }
type Failed = { error: string }
interface Tree {
  readonly at: Date
  readonly parent?: Tree
  readonly children: readonly Tree[]
  readonly byName: Readonly<Record<string, Tree>>
}

const jsonified = suite('the type of a result')

jsonified('is that of its JSON, as it arrives', async () => {
  const order = () => ({
    at,
    url: new URL('https://svc.example/'),
    note: undefined as string | undefined,
    lines: [{ at }, undefined],
    pair: [at, 1] as const,
  })
  const expected: {
    at: string
    url: string
    note?: string
    lines: ({ at: string } | null)[]
    pair: readonly [string, 1]
  } = { at: iso, url: 'https://svc.example/', lines: [{ at: iso }, null], pair: [iso, 1] }
  const result = await testRun().run(order)
  same<typeof result, typeof expected>(true)
  assert.equal(result, expected)
})

jsonified('is null for a function that returns nothing', async () => {
  const nothing = await testRun().run(async () => {})
  same<typeof nothing, null>(true)
  assert.is(nothing, null)
  const found = await testRun().run((): { id: number } | undefined => undefined)
  same<typeof found, { id: number } | null>(true)
  assert.is(found, null)
})

jsonified('has what toJSON returns, and not its toJSON', async () => {
  class Order {
    readonly at = at
    total() {
      return 1
    }
    toJSON(): this {
      return this
    }
  }
  const result = await testRun().run(() => new Order())
  same<typeof result, { readonly at: string }>(true)
  assert.equal(result, { at: iso })
})

jsonified('has an empty signal of currentRun()', async () => {
  const { signal } = await testRun().run(() => currentRun())
  same<typeof signal, Record<never, never>>(true)
  assert.equal(signal, {})
})

jsonified('is the reply of a webhook that returns a Response or bytes', async () => {
  const page = fn({ webhook: { service: 'shop', path: '/page' } }, () => new Response('<p>'))
  const { status, 'body-raw': text } = await testRun().run(page)
  same<typeof text, string | undefined>(true)
  assert.equal([status, text], [200, '<p>'])
  const logo = fn({ webhook: { service: 'shop', path: '/logo' } }, () => new Uint8Array([255]))
  assert.is((await testRun().run(logo))['body-bytes'], '/w==')
})

jsonified('remains if it is JSON, or not known', () => {
  same<Jsonified<Any>, Any>(true)
  same<Jsonified<unknown>, unknown>(true)
  same<Jsonified<never>, never>(true)
  same<Jsonified<'a' | 1 | boolean | null>, 'a' | 1 | boolean | null>(true)
  same<Jsonified<Direction | OrderId>, Direction | OrderId>(true)
  same<Jsonified<[a: string, b?: number, ...boolean[]]>, [a: string, b?: number | null, ...boolean[]]>(true)
  same<Jsonified<Record<string, unknown>>, Record<string, unknown>>(true)
  same<Jsonified<{ a: unknown; b: Any; at: Date }>, { a: unknown; b: Any; at: string }>(true)
  same<Jsonified<Json>, Json>(true)
  same<Jsonified<Expression>, Expression>(true)
})

jsonified('lacks what JSON lacks', () => {
  same<Jsonified<undefined>, null>(true)
  same<Jsonified<() => void>, null>(true)
  same<Jsonified<readonly (Date | undefined)[]>, readonly (string | null)[]>(true)
  same<Jsonified<{ total(): number; onPaid?: () => void; [tag]: 1; a: 1 }>, { onPaid?: never; a: 1 }>(true)
  same<
    Jsonified<{ readonly a: Date; b?: Date; c: Date | undefined }>,
    { readonly a: string; b?: string; c?: string }
  >(true)
  same<Jsonified<Paid | Failed>, { at: string; error?: never } | { error: string }>(true)
})

jsonified('is never for what a run cannot return', () => {
  same<Jsonified<bigint | symbol | Map<string, 1> | Set<1> | Buffer | Uint8Array | ArrayBuffer>, never>(true)
  same<Jsonified<{ id: bigint | string; later: Promise<1> }>, { id: string; later: never }>(true)
})

jsonified('may contain itself', () => {
  const read = (tree: Jsonified<Tree>): string | undefined =>
    tree.children[0]?.byName['left']?.parent?.parent?.at.slice(0, 4)
  const leaf = { at: iso, children: [], byName: {} }
  const tree = {
    at: iso,
    children: [{ ...leaf, byName: { left: { ...leaf, parent: { ...leaf, parent: leaf } } } }],
    byName: {},
  }
  assert.is(read(tree), '2026')
  // @ts-expect-error: a Date arrives as text
  const dates: Jsonified<Tree> = { at, children: [], byName: {} }
  // @ts-expect-error: so it does inside
  const nested: Jsonified<Tree> = { ...leaf, children: [{ ...leaf, at }] }
  const values: Jsonified<Loose> = { a: [null, { b: '2026' }] }
  // @ts-expect-error: undefined is null in a list
  const lost: Jsonified<Loose> = [undefined]
  void [dates, nested, values, lost]
})

jsonified.run()
