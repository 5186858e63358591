import { createHash } from 'node:crypto'

/** Clients of models accept names of letters, digits, `_` and `-`, and some of them no more than 64. */
const MAX_NAME = 64
const HASH_DIGITS = 8

/** Whether a tool can have this name. */
export const isToolName = (name: unknown): name is string =>
  typeof name === 'string' && name.length <= MAX_NAME && /^[A-Za-z0-9_-]+$/.test(name)

/** The name of the tool that a function is. It follows from the reference alone, so a deployment does not change it. */
export const toolNameOf = (service: string, ns: string, name: string): string =>
  fitting(`${service}_${ns}_${name}`.replaceAll(/[^A-Za-z0-9_-]/g, '_'), `${service}/${ns}/${name}`)

/** The name of a tool whose own name belongs to an older project. */
export const toolNameBeside = (taken: string, project_id: string): string =>
  `${taken.slice(0, MAX_NAME - HASH_DIGITS - 1)}_${digitsOf(`${taken}/${project_id}`)}`

const fitting = (plain: string, whole: string): string =>
  plain.length <= MAX_NAME ? plain : `${plain.slice(0, MAX_NAME - HASH_DIGITS - 1)}_${digitsOf(whole)}`

const digitsOf = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, HASH_DIGITS)
