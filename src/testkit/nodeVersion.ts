const HINT =
  'npm installs it with svc; npm scripts and npx find it, and an editor can be set to node_modules/.bin/node'

/** Throws if this Node is older than `major.minor`. Modules that need a newer one are loaded after it. */
export const needNode = (what: string, major: number, minor: number): void => {
  const [ownMajor = 0, ownMinor = 0] = process.versions.node.split('.').map(Number)
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return
  throw new Error(`${what}: expected Node ${major}.${minor} or later, got ${process.versions.node}; ${HINT}`)
}
