import { isDependency, openPlaces } from './places.ts'
import { openSites, type Site } from './sites.ts'

/** Characters of a stack that are read. The rest is hardly of use, and each frame costs a look-up. */
const MAX_READ = 64 << 10

const FRAME = /^ +at /
const FRAME_WITH_PLACE = /^( +at (?:.* \()?)((?:file:\/\/)?\/.*?):(\d+):(\d+)(\)?)$/
const FRAME_OF_NODE = /\(?node:[^)]*\)?$/

export interface Stack {
  /** With the frames of the user only, at the places that the user wrote. */
  readonly text: string
  /** The place of the topmost frame, rather in the own code of the user than in a dependency. */
  readonly location?: Site
}

/** The frames of a stack, each after a line break; empty if it has none. */
export const framesOf = (stack: string): string => /\n +at .*/s.exec(stack)?.[0] ?? ''

/** Reads stacks of errors in the code of one build. */
export const openStacks = (dir: string, runtimeDir: string) => {
  const places = openPlaces(dir, runtimeDir)
  const siteOf = openSites(places)

  /** Returns the frame as users read it, or null to leave it out. */
  const frameIn = (line: string): { text: string; site?: Site } | null => {
    if (line.includes(places.runtimeDir) || FRAME_OF_NODE.test(line)) return null
    const [, before = '', path = '', row, column, after = ''] = FRAME_WITH_PLACE.exec(line) ?? []
    const file = path && places.fileOf(path)
    if (!file) return { text: places.hide(line) }
    const site = siteOf(file, Number(row), Number(column))
    return { text: `${before}${site.file}:${site.line}:${site.column}${after}`, site }
  }

  const read = (stack: string): Stack => {
    const lines: string[] = []
    let location: Site | undefined
    for (const line of stack.slice(0, MAX_READ).split('\n')) {
      const frame = FRAME.test(line) ? frameIn(line) : { text: places.hide(line) }
      if (!frame) continue
      lines.push(frame.text)
      if (frame.site && (!location || (isDependency(location.file) && !isDependency(frame.site.file))))
        location = frame.site
    }
    return { text: lines.join('\n'), ...(location && { location }) }
  }

  return {
    places,
    siteOf,
    read,
    /** A printed text, in which stacks may occur. */
    inOutput: (text: string): string =>
      places.hide(text) === text
        ? text
        : text
            .split('\n')
            .flatMap((line) => (FRAME.test(line) ? (frameIn(line)?.text ?? []) : [places.hide(line)]))
            .join('\n'),
  }
}

export type Stacks = ReturnType<typeof openStacks>
