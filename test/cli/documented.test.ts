import { readdirSync, readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { cli } from '../support/cli.ts'
import { suite } from '../support/suite.ts'

const root = new URL('../../', import.meta.url)
const pages = [
  'README.md',
  'infra/README.md',
  ...['docs/', 'docs/guides/'].flatMap((folder) =>
    readdirSync(new URL(folder, root))
      .filter((name) => name.endsWith('.md'))
      .map((name) => folder + name),
  ),
]

/** The invocations of `svc` in the code of a page, without the program. */
const invocationsIn = (page: string): string[] => {
  const text = readFileSync(new URL(page, root), 'utf8')
  const blocks = [...text.matchAll(/^```\w*\n(.*?)^```$/gms)].flatMap(([, code = '']) => code.split('\n'))
  const spans = [...text.replaceAll(/^```.*?^```$/gms, '').matchAll(/`([^`\n]+)`/g)].map(
    ([, code = '']) => code,
  )
  return [...blocks, ...spans].flatMap((line) => {
    const [, invocation] = /^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:npx )?svc ([a-z-]+\b[^|>&]*)/.exec(line) ?? []
    return invocation === undefined ? [] : [invocation.trim()]
  })
}

/** The words that can name a group and a command, and the options. */
const namesIn = (invocation: string) => {
  const words = invocation.split(/\s+/)
  const isName = (word: string | undefined) => /^[a-z][a-z-]*$/.test(word ?? '')
  const names = words.slice(0, isName(words[1]) ? 2 : 1)
  return { names, options: words.filter((word) => /^--[a-z]/.test(word)) }
}

const documented = suite('the documentation of svc', { timeoutMs: 120_000 })

documented('shows commands and options that exist', async () => {
  const invocations = pages.flatMap((page) => invocationsIn(page).map((invocation) => ({ page, invocation })))
  assert.ok(invocations.length > 50)
  const helps = new Map<string, string>()
  for (const { page, invocation } of invocations) {
    const { names, options } = namesIn(invocation)
    const name = names.join(' ')
    if (!helps.has(name)) {
      const { code, out, err } = await cli(['help', ...names])
      assert.is(code, 0, `${page}: svc ${invocation}: ${err}`)
      helps.set(name, out)
    }
    for (const option of options)
      assert.match(helps.get(name) ?? '', new RegExp(`${option}\\b`), `${page}: svc ${invocation}`)
  }
})

documented('describes every command in docs/operations.md, docs/functions.md or docs/cli.md', async () => {
  const described = new Set(
    ['docs/operations.md', 'docs/functions.md', 'docs/cli.md']
      .flatMap(invocationsIn)
      .map((invocation) => namesIn(invocation).names.join(' ')),
  )
  const { out } = await cli(['--help'])
  const commands = [...out.matchAll(/^ {2}svc ([a-z-]+(?: [a-z-]+)?)\b/gm)].map(([, name = '']) => name)
  assert.ok(commands.length > 25)
  const isDescribed = (name: string) =>
    described.has(name) || described.has(name.replace(/ (?:list|create)$/, ''))
  assert.equal(
    commands.filter((name) => !isDescribed(name)),
    [],
  )
})

documented.run()
