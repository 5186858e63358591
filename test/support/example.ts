import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { install, npmPack, unpacked } from './installed.ts'

/** A copy of a folder of `examples` with the packed package installed. */
export const installExample = async (name: string): Promise<string> =>
  install(await unpacked(await npmPack()), fileURLToPath(new URL(`../../examples/${name}`, import.meta.url)))

/** Runs a program of a project to its end. */
export const runIn = (
  cwd: string,
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number; readonly out: string }> =>
  new Promise((resolve) => {
    const child = execFile(
      file,
      [...args],
      { cwd, env: { PATH: process.env['PATH'], ...env } },
      (error, out, err) => resolve({ code: error ? Number(error.code ?? -1) : 0, out: out + err }),
    )
    child.stdin?.end()
  })

/** Runs a program of a project, which must end with 0. Resolves with its output. */
export const outputIn = async (...given: Parameters<typeof runIn>): Promise<string> => {
  const { code, out } = await runIn(...given)
  assert.is(code, 0, out)
  return out
}

/** The `svc` of a project. */
export const svcIn = (project: string): string => join(project, 'node_modules/svc/bin/svc.js')

/** Checks the types of a project. */
export const compile = async (project: string): Promise<void> => {
  const tsc = join(project, 'node_modules/typescript/bin/tsc')
  assert.is(await outputIn(project, process.execPath, [tsc, '-p', '.']), '')
}
