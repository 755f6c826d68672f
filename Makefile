# SPDX-License-Identifier: Apache-2.0
# The front door. `make demo` and `make check` do all their set-up on a fresh Debian 12 machine; after the first time
# they work offline. The build itself is Meson's: see meson.build.
BUILD  ?= build
PREFIX ?= /usr/local
MESON_FLAGS ?=
# By how much tests may exceed their time: machines are busy, tests that hang are few.
PATIENCE ?= 5
HALFWARP = $(BUILD)/src/cli/halfwarp
WHERE = "$$(realpath -ms -- "$(PREFIX)")"

.PHONY: all demo check bench install installable clean
all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@tools/setup
	@echo "== configuring $(BUILD)"
	@meson setup $(BUILD) --buildtype=debugoptimized --prefix=$(WHERE) $(MESON_FLAGS) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

demo: $(BUILD)/build.ninja
	@echo "== building Halfwarp"
	@ninja -C $(BUILD)
	@tools/demo $(HALFWARP)

check: $(BUILD)/build.ninja
	@echo "== building Halfwarp and its tests"
	@ninja -C $(BUILD)
	@echo "== running the tests"
	@meson test -C $(BUILD) --no-rebuild --print-errorlogs --timeout-multiplier $(PATIENCE)

bench: $(BUILD)/build.ninja
	@tools/setup tools/packages.txt tools/packages-bench.txt
	@meson setup --reconfigure $(BUILD) >/dev/null && ninja -C $(BUILD) && ninja -C $(BUILD) bench/bench
	@$(HALFWARP) run $(BUILD)/bench/bench --dir bench --write docs/performance.md
	@$(HALFWARP) run $(BUILD)/bench/bench --dir bench --counting yes --write docs/performance.md

# Said before anything is built: the first part of the way that exists must be a folder one may write to.
installable:
	@at="$(DESTDIR)"$(WHERE); while [ ! -e "$$at" ]; do at=$$(dirname "$$at"); done; \
	[ -d "$$at" ] || { echo "install: $$at is a file, not a folder"; exit 1; }; \
	[ -w "$$at" ] || { echo "install: $$at is not writable; choose another PREFIX, or install as root"; exit 1; }

install: installable $(BUILD)/build.ninja
	@meson configure $(BUILD) --prefix=$(WHERE)
	@ninja -C $(BUILD) build.ninja >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@echo "== building Halfwarp"
	@ninja -C $(BUILD)
	@meson install -C $(BUILD) --no-rebuild --quiet
	@echo "== installed; the command is $(DESTDIR)"$(WHERE)"/bin/halfwarp"

clean:
	rm -rf $(BUILD)
