/** One system call of a trace, from its first line to its last. */
export interface Call {
  readonly thread: number
  readonly name: string
  /** As strace prints them, with every byte of a text as `\xNN`. */
  readonly args: readonly string[]
  /** Null if the process died first. */
  readonly result: number | null
}

const LINE = /^(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()/
const RESULT = /\) += (-?\d+|0x[0-9a-f]+|\?)/y
/** The end of a line of which strace has not seen the result: the call went on, or strace or the process was killed. */
const UNFINISHED = /<(?:unfinished|detached) \.\.\.>$/

/** Part of a call: strace splits a call during which another thread has made one. */
export type Part =
  | { readonly type: 'whole'; readonly call: Call }
  | { readonly type: 'begin'; readonly call: Call }
  | { readonly type: 'end'; readonly thread: number; readonly name: string; readonly rest: string }

/** Reads a line of `strace -f -xx`. Null for lines about signals and exits. Throws if a text was cut. */
export const partOf = (line: string): Part | null => {
  const match = LINE.exec(line)
  if (!match) return null
  const [start, pid = '', resumed, name = ''] = match
  const thread = Number(pid)
  if (resumed !== undefined) return { type: 'end', thread, name: resumed, rest: line.slice(start.length) }
  const { args, after } = argsOf(line, start.length)
  if (UNFINISHED.test(line)) return { type: 'begin', call: { thread, name, args, result: null } }
  return { type: 'whole', call: { thread, name, args, result: resultAt(line, after) } }
}

/** Completes a split call with the arguments and the result of its last line. */
export const completed = (call: Call, rest: string): Call => {
  const { args, after } = argsOf(rest, 0)
  return { ...call, args: [...call.args, ...args], result: resultAt(rest, after) }
}

const resultAt = (line: string, at: number): number | null => {
  RESULT.lastIndex = at
  const [, text = '?'] = RESULT.exec(line) ?? []
  return text === '?' ? null : Number(text)
}

/** Splits arguments at the commas of the outermost level. Texts are skipped as a whole: some have megabytes. */
const argsOf = (line: string, from: number): { readonly args: string[]; readonly after: number } => {
  const args: string[] = []
  let depth = 0
  let start = from
  let at = from
  const add = (): void => {
    const text = line.slice(start, at).trim()
    if (text !== '' && !UNFINISHED.test(text)) args.push(text)
    start = at + 1
  }
  for (; at < line.length; at++) {
    const character = line[at]
    if (character === '"') {
      at = line.indexOf('"', at + 1)
      if (at < 0) throw new Error('Expected the end of a text in the trace')
      if (line.startsWith('...', at + 1)) throw new Error('Expected complete texts in the trace, got a part')
    } else if (character === '[' || character === '{' || character === '(') depth++
    else if (character === ']' || character === '}') depth--
    else if (character === ')') {
      if (depth === 0) break
      depth--
    } else if (character === ',' && depth === 0) add()
    else if (character === '<' && UNFINISHED.test(line.slice(at))) break
  }
  add()
  return { args, after: at }
}

/** The bytes of all texts of an argument: a text, or a list of buffers. */
export const bytesOf = (argument: string): Buffer => {
  const texts: Buffer[] = []
  for (let at = argument.indexOf('"'); at >= 0;) {
    const end = argument.indexOf('"', at + 1)
    texts.push(Buffer.from(argument.slice(at + 1, end).replaceAll('\\x', ''), 'hex'))
    at = argument.indexOf('"', end + 1)
  }
  return texts.length === 1 && texts[0] ? texts[0] : Buffer.concat(texts)
}
