import type { Inspection } from '../../src/ports/runtime.ts'
import { openWorkbench } from '../sandbox/harness.ts'

/** Inspects a build in a real child. */
export const inspectionOf = async (
  source: string | Record<string, string>,
  inspectMs = 60_000,
): Promise<Inspection> => {
  const { runtime, inspect } = await openWorkbench(source, { startMs: 60_000, inspectMs }) // a busy machine needs many seconds
  try {
    return await inspect()
  } finally {
    await runtime.close()
  }
}

/** The message of the refusal of a build. */
export const messageOf = async (source: Record<string, string>, inspectMs?: number): Promise<string> => {
  const inspection = await inspectionOf(source, inspectMs)
  return inspection.ok ? `ok: ${JSON.stringify(inspection.functions)}` : inspection.message
}

/** The begin of the refusal of a build without functions. */
export const MODULE_RULE =
  'Expected at least one exported function in a module (.js, .mjs, .ts, .mts) outside node_modules, in a path without names that begin with "_" or "."'
