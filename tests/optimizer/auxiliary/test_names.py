"""Names of tools vary by variant, consistently, and always say which capability they stand for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorydojo.optimizer import auxiliary
from memorydojo.optimizer.auxiliary._base import Capability, Naming, State, check_pools, named
from memorydojo.optimizer.auxiliary._domain import definition, suite_name
from memorydojo.running import environment

domains = st.sampled_from(auxiliary.DOMAINS)
variants = st.text(max_size=12)


def schema(domain: str, variant: str) -> list[tuple[str, str, object]]:
    functions = definition(domain).naming(variant).functions()
    return [(f.name, f.description, f.parameters.model_json_schema()) for f in functions]


@settings(max_examples=20)
@given(domain=domains, variant=variants)
def test_the_same_variant_gives_the_same_tools(domain: str, variant: str) -> None:
    assert schema(domain, variant) == schema(domain, variant)


@given(domain=domains, variant=variants)
def test_every_name_is_a_known_one_and_names_one_tool(domain: str, variant: str) -> None:
    names = definition(domain).naming(variant).tool_names
    assert len(set(names)) == len(names) == len(definition(domain).capabilities)
    assert set(names) <= auxiliary.tool_names(domain)
    assert [definition(domain).by_tool[name] for name in names] == list(definition(domain).capabilities)


@given(domain=domains, variant=variants)
def test_reference_actions_use_the_names_of_the_tools(domain: str, variant: str) -> None:
    naming = definition(domain).naming(variant)
    tools = {function.name: function.parameters.model_fields for function in naming.functions()}
    for template in definition(domain).templates:
        for step in template.steps:
            call = naming.call(step)
            assert call.args.keys() <= tools[call.function].keys()
            required = {name for name, field in tools[call.function].items() if field.is_required()}
            assert required <= call.args.keys()


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_variants_differ_in_names_of_tools_and_parameters_and_in_wording(domain: str) -> None:
    first, second = schema(domain, "1"), schema(domain, "2")
    for part in range(3):
        differing = sum(a[part] != b[part] for a, b in zip(first, second, strict=True))
        assert differing >= len(first) / 4
    seen = {name for n in range(60) for name in definition(domain).naming(str(n)).tool_names}
    assert seen == auxiliary.tool_names(domain)


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_every_tool_has_at_least_four_names_and_two_descriptions(domain: str) -> None:
    for capability in definition(domain).capabilities:
        assert len(set(capability.names)) >= 4, capability.id
        assert len(set(capability.texts)) >= 2, capability.id


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_a_suite_of_a_variant_has_its_tools(domain: str) -> None:
    names = {tool.name for tool in environment.runtime_functions(f"{suite_name(domain)}:5")}
    assert names == set(definition(domain).naming("5").tool_names)


def test_an_error_of_a_tool_says_what_there_is() -> None:
    from agentdojo.functions_runtime import FunctionsRuntime

    naming = definition("banking").naming("")
    runtime = FunctionsRuntime(naming.functions())
    name = next(n for n in naming.tool_names if definition("banking").by_tool[n].id == "read_letter")
    parameter = next(iter(runtime.functions[name].parameters.model_fields))
    _, error = runtime.run_function(definition("banking").initial_state(), name, {parameter: "lt-9"})
    assert error is not None
    assert error.startswith("ValueError: there is no letter 'lt-9'; there are: lt-201, ")


def one(state: State, a: str) -> str:
    return a


def two(state: State, a: str) -> str:
    return a


def test_pools_that_overlap_are_refused() -> None:
    first = Capability(one, ("x", "y"), ("t",), {"a": named("a", text="t")})
    with pytest.raises(ValueError, match="'y' stands for one and for two"):
        check_pools([first, Capability(two, ("y", "z"), ("t",), {"a": named("a", text="t")})])
    with pytest.raises(ValueError, match=r"two takes \['a'\], but describes \['b'\]"):
        check_pools([first, Capability(two, ("z",), ("t",), {"b": named("a", text="t")})])


def test_the_draws_of_one_domain_do_not_depend_on_another() -> None:
    capabilities = definition("banking").capabilities
    assert Naming("a", capabilities, "1").tool_names != Naming("b", capabilities, "1").tool_names
