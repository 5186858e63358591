import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers'
import { setImmediate } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { importsOf, loadedFiles } from './modules.ts'
import type { Stacks } from './stacks.ts'

/** The part of the time after which a module that waits is reported, before the service ends this process. */
const SHARE = 0.9

/** A module that has ended its evaluation resolves in the first of these turns. */
const TURNS = 3

/** Outside of functions: bundlers and people indent what is inside of them. */
const TOP_LEVEL_AWAIT = /^(?![^\n]*\b(?:async|function)\b[^\n]*\bawait\b)\S[^\n]*?\bawait\b|^await\b/m

/** Calls back with a message that names the top-level await which has not ended when most of the time is over. */
export const reportUnsettled = (
  stacks: Stacks,
  withinMs: number,
  report: (message: string) => void,
): void => {
  const afterMs = withinMs * SHARE
  const look = async (): Promise<void> => {
    const site = await unsettledSite(stacks)
    if (site !== null)
      report(`${site}: Expected the top-level await to end, but it still waits after ${afterMs / 1000} s`)
  }
  setTimeout(() => void look(), afterMs).unref()
}

/** The place of the top-level await; null if no module waits. */
const unsettledSite = async ({ places: { dir }, siteOf }: Stacks): Promise<string | null> => {
  const pending = new Set<string>()
  for (const file of loadedFiles()) if (await isPending(join(dir, file))) pending.add(file)
  const waiting = [...pending].filter((file) => ![...importsOf(file)].some((each) => pending.has(each)))
  const [file = [...pending][0]] = waiting
  if (file === undefined) return null
  const text = readFileSync(join(dir, file), 'utf8')
  const found = TOP_LEVEL_AWAIT.exec(text)
  if (!found) return file
  const line = text.slice(0, found.index).split('\n').length
  const site = siteOf(file, line, found[0].lastIndexOf('await') + 1)
  return `${site.file}:${site.line}`
}

const isPending = async (path: string): Promise<boolean> => {
  let isSettled = false
  const settle = () => (isSettled = true)
  import(pathToFileURL(path).href).then(settle, settle)
  for (let turn = 0; turn < TURNS && !isSettled; turn++) await setImmediate()
  return !isSettled
}
