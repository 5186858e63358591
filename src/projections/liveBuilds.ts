/**
 * The live builds of each project, in the order of their uploads: the last one is live. When it is deleted, the one before
 * it is live again.
 */
export class LiveBuilds<Build extends { readonly build_id: string }> {
  readonly #ofProject = new Map<string, readonly Build[]>()

  /** Adds a build, or the same one again, and returns the newest. */
  add(project_id: string, build: Build): Build {
    const before = this.#ofProject.get(project_id) ?? []
    const at = before.findIndex(({ build_id }) => build_id === build.build_id)
    const builds = at < 0 ? [...before, build] : before.with(at, build)
    this.#ofProject.set(project_id, builds)
    return builds.at(-1) ?? build
  }

  /** Removes a build and returns the newest that is left. */
  remove(project_id: string, build_id: string): Build | null {
    const left = (this.#ofProject.get(project_id) ?? []).filter((build) => build.build_id !== build_id)
    if (left.length > 0) this.#ofProject.set(project_id, left)
    else this.#ofProject.delete(project_id)
    return left.at(-1) ?? null
  }

  has(project_id: string, build_id: string): boolean {
    return this.#ofProject.get(project_id)?.some((build) => build.build_id === build_id) ?? false
  }

  forget(project_id: string): void {
    this.#ofProject.delete(project_id)
  }
}
